import type { User } from '../../domain/user.ts'

/** A user as programs see it: fields of the profile, by the same names. `docs/api.md: User profile`. */
export interface UserObject {
  readonly id: number
  readonly username: string
  /** 1 common user, 10 admin, 100 root. */
  readonly role: number
  /** 1 enabled, 2 disabled. */
  readonly status: number
  readonly group: string
  /** What remains, in quota units. */
  readonly quota: number
  readonly used_quota: number
  readonly request_count: number
}

/** A stored user, shown. */
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
