import type { Budget } from './budget.ts'
import type { CallRateLimit } from './call-terms.ts'
import type { OperatorTerms } from './operator-terms.ts'

/** Status of a token, as stored and shown; `docs/api.md: Token`. */
export const TOKEN_STATUS = { enabled: 1, disabled: 2, expired: 3, exhausted: 4 } as const

/** 1, 2, 3 or 4. */
export type TokenStatus = (typeof TOKEN_STATUS)[keyof typeof TOKEN_STATUS]

/** An API key and its limits, without the key itself. Times are Unix seconds, quota is in whole units. */
export interface Token {
  readonly id: number
  readonly userId: number
  readonly name: string
  readonly status: TokenStatus
  readonly created_time: number
  readonly accessed_time: number
  /** −1 = never. */
  readonly expired_time: number
  /** May be negative after a call that cost more than its hold. */
  readonly remain_quota: number
  readonly unlimited_quota: boolean
  readonly used_quota: number
  readonly model_limits_enabled: boolean
  /** Comma-separated. */
  readonly model_limits: string
  /** Addresses and CIDRs, one a line; null or blank = no restriction. */
  readonly allow_ips: string | null
  /** Empty = the user's own group. */
  readonly group: string
  /** JSON map of vendor → group; empty = `group`. */
  readonly vendor_routes: string
  readonly budget: Budget | undefined
  readonly rateLimit: CallRateLimit
  /** The part of these that an operator gave. */
  readonly operator_terms: OperatorTerms
  /** Unix seconds of the soft deletion; null if not deleted. */
  readonly deleted_time: number | null
}
