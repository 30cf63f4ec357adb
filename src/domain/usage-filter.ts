import type { Usage } from '@sluice/wire/usage'

/** Sums over settled calls. */
export interface UsageTotals {
  /** Number of calls with a response, as in a user's `request_count`. */
  readonly requests: number
  /** Quota units. */
  readonly quota: number
  readonly usage: Usage
}

/** Selects settled calls that match all given fields. */
export interface UsageFilter {
  readonly user_id?: number | undefined
  /** Earliest end of the call, inclusive, in Unix milliseconds. */
  readonly fromMs?: number | undefined
  /** Latest end of the call, exclusive. */
  readonly beforeMs?: number | undefined
  readonly username?: string | undefined
  readonly token_name?: string | undefined
  readonly model?: string | undefined
  readonly channel?: string | undefined
  readonly group?: string | undefined
  readonly id?: string | undefined
  /** Calls whose charge has one of these reasons. */
  readonly reasons?: readonly string[] | undefined
}

/** The dimensions by which daily sums can be grouped; `key` is an API key. */
export const USAGE_DIMENSIONS = ['model', 'user', 'key', 'channel', 'day'] as const

/** A dimension of usage. */
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]
