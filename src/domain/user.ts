/** 1 common user, 10 admin, 100 root. */
export type Role = 1 | 10 | 100

/** A user's status; 2 refuses on account and relay paths alike. */
export const USER_STATUS = { enabled: 1, disabled: 2 } as const

/** What calls and charges need of an account holder. Quota is in whole units. */
export interface User {
  readonly id: number
  readonly username: string
  readonly role: Role
  readonly status: 1 | 2
  readonly group: string
  /** Remaining quota; may be negative after an answer that cost more than its hold. */
  readonly quota: number
  readonly usedQuota: number
  readonly requestCount: number
}
