import type { Usage } from '@sluice/wire/usage'

/** Sums over several settled calls. */
export interface UsageTotals {
  /** Number of calls with a response, as in a user's `request_count`. */
  readonly requests: number
  /** Sum of the charges in quota units. */
  readonly quota: number
  readonly usage: Usage
}

/** One value, or several of which a call must match one. */
export type FilterValues<Value> = Value | readonly Value[]

/** The values of a filter's field as a list. */
export function filterValueList<Value extends string | number>(given: FilterValues<Value>): readonly Value[] {
  return typeof given === 'object' ? given : [given]
}

/** Selects settled calls that match all given fields. */
export interface UsageFilter {
  readonly user_id?: FilterValues<number> | undefined
  /** Earliest end of the call, inclusive, in Unix milliseconds. */
  readonly fromMs?: number | undefined
  /** Latest end of the call, exclusive, in Unix milliseconds. */
  readonly beforeMs?: number | undefined
  readonly username?: FilterValues<string> | undefined
  readonly token_id?: FilterValues<number> | undefined
  readonly token_name?: FilterValues<string> | undefined
  readonly model?: FilterValues<string> | undefined
  readonly channel?: FilterValues<string> | undefined
  readonly channel_id?: FilterValues<number> | undefined
  readonly group?: FilterValues<string> | undefined
  /** Service tiers in which the calls were served. */
  readonly service_tier?: FilterValues<string> | undefined
  /** Regions in which the calls were served. */
  readonly region?: FilterValues<string> | undefined
  readonly session?: FilterValues<string> | undefined
  /** Ids of batches whose lines the calls were made for. */
  readonly batch?: FilterValues<string> | undefined
  /** Reasons why the calls missed a prompt cache. */
  readonly cache_break?: FilterValues<string> | undefined
  readonly id?: FilterValues<string> | undefined
  /** How the calls ended, such as `complete` or `failed` (`SettlementReason`). */
  readonly reasons?: readonly string[] | undefined
  /** Causes for which the calls failed. */
  readonly causes?: readonly string[] | undefined
}

/** The dimensions by which daily sums can be grouped; `key` is an API key. */
export const USAGE_DIMENSIONS = ['model', 'user', 'key', 'channel', 'day'] as const

/** A dimension by which daily sums can be grouped. */
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]
