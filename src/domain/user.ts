import type { Budget } from './budget.ts'
import type { CallRateLimit } from './call-terms.ts'

/** Roles of users, as stored and shown; a higher role has the rights of all lower ones. */
export const Role = { user: 1, admin: 10, root: 100 } as const

/** 1 common user, 10 admin, 100 root. */
export type Role = (typeof Role)[keyof typeof Role]

/** The roles, the lowest first. */
export const ROLES: readonly Role[] = Object.values(Role)

/** Status of a user; disabled users are refused on account and relay endpoints alike. */
export const USER_STATUS = { enabled: 1, disabled: 2 } as const

/** Account holder, as needed for calls and charges. Quota is in whole units. */
export interface User {
  readonly id: number
  readonly username: string
  readonly role: Role
  readonly status: 1 | 2
  readonly group: string
  /** Remaining quota; may be negative after a call that cost more than its hold. */
  readonly quota: number
  readonly used_quota: number
  readonly request_count: number
  readonly budget: Budget | undefined
  readonly rateLimit: CallRateLimit
}
