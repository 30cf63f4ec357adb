import type { ManagedUser, Profile } from '../domain/profile.ts'
import type { Role, User } from '../domain/user.ts'
import { type TermColumns, termsFromRow } from './term-columns.ts'
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
    usedQuota: row.used_quota,
    requestCount: row.request_count,
    ...termsFromRow(row),
  }
}

/** Converts the columns of a user that the user may see. */
export function profileFromRow(row: UserRow): Profile {
  return {
    ...userFromRow(row),
    displayName: row.display_name,
    email: row.email,
    codeHostId: row.code_host_id,
    chatAId: row.chat_a_id,
    oidcId: row.oidc_id,
    chatBId: row.chat_b_id,
    chatCId: row.chat_c_id,
    forumId: row.forum_id,
    affCode: row.aff_code,
    affCount: row.aff_count,
    affQuota: row.aff_quota,
    affHistoryQuota: row.aff_history_quota,
    inviterId: row.inviter_id,
    setting: row.setting,
    paymentCustomer: row.payment_customer,
    sidebarModules: row.sidebar_modules,
    hasPassword: row.password_hash !== null,
  }
}

/** Converts the columns of a user that administrators may see. */
export function managedUserFromRow(row: UserRow): ManagedUser {
  return { ...profileFromRow(row), remark: row.remark, createdTime: row.created_time }
}
