import type { User } from '../../domain/user.ts'

/** A user in results of operations: fields of the profile. `docs/api.md: User profile`. */
export interface UserObject {
  readonly id: number
  readonly username: string
  /** 1 common user, 10 admin, 100 root. */
  readonly role: number
  /** 1 enabled, 2 disabled. */
  readonly status: number
  readonly group: string
  /** The balance in quota units. */
  readonly quota: number
  readonly used_quota: number
  readonly request_count: number
}

/** Converts a stored user. */
export function userObject(user: User): UserObject {
  return {
    id: user.id,
    username: user.username,
    role: user.role,
    status: user.status,
    group: user.group,
    quota: user.quota,
    used_quota: user.usedQuota,
    request_count: user.requestCount,
  }
}
