import type { Role, User } from '../domain/user.ts'
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

/** What calls and charges need of a stored user. */
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
  }
}
