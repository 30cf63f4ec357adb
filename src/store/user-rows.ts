import type { ManagedUser, Profile } from '../domain/profile.ts'
import type { Role, User } from '../domain/user.ts'
import type { TermColumns } from '../domain/records/terms.ts'
import { termsFromRow } from './term-columns.ts'
import type { UserRow } from './schema.ts'

type NeededColumns =
  | 'id'
  | 'username'
  | 'role'
  | 'status'
  | 'group_name'
  | 'quota'
  | 'used_quota'
  | 'request_count'
  | keyof TermColumns

/** Converts the columns of a user that calls and charges need. */
export function userFromRow(row: Pick<UserRow, NeededColumns>): User {
  return {
    id: row.id,
    username: row.username,
    role: row.role as Role,
    status: row.status as User['status'],
    group: row.group_name,
    quota: row.quota,
    used_quota: row.used_quota,
    request_count: row.request_count,
    ...termsFromRow(row),
  }
}

/** Converts the columns of a user that the user may see. */
export function profileFromRow(row: UserRow): Profile {
  return {
    ...userFromRow(row),
    display_name: row.display_name,
    email: row.email,
    code_host_id: row.code_host_id,
    chat_a_id: row.chat_a_id,
    oidc_id: row.oidc_id,
    chat_b_id: row.chat_b_id,
    chat_c_id: row.chat_c_id,
    forum_id: row.forum_id,
    aff_code: row.aff_code,
    aff_count: row.aff_count,
    aff_quota: row.aff_quota,
    aff_history_quota: row.aff_history_quota,
    inviter_id: row.inviter_id,
    setting: row.setting,
    payment_customer: row.payment_customer,
    sidebar_modules: row.sidebar_modules,
    has_password: row.password_hash !== null,
  }
}

/** Converts the columns of a user that administrators may see. */
export function managedUserFromRow(row: UserRow): ManagedUser {
  return { ...profileFromRow(row), remark: row.remark, created_time: row.created_time }
}
