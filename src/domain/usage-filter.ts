import type { Usage } from '@sluice/wire/usage'

/** Sums over settled calls. */
export interface UsageTotals {
  /** Number of calls with a response, as in a user's `request_count`. */
  readonly requests: number
  /** Quota units. */
  readonly quota: number
  readonly usage: Usage
}

/** Value, or several of which a call matches one. */
export type OneOrMore<Value> = Value | readonly Value[]

/** The values of a filter. */
export function valuesOf<Value extends string | number>(given: OneOrMore<Value>): readonly Value[] {
  return typeof given === 'object' ? given : [given]
}

/** Selects settled calls that match all given fields. */
export interface UsageFilter {
  readonly user_id?: OneOrMore<number> | undefined
  /** Earliest end of the call, inclusive, in Unix milliseconds. */
  readonly fromMs?: number | undefined
  /** Latest end of the call, exclusive. */
  readonly beforeMs?: number | undefined
  readonly username?: OneOrMore<string> | undefined
  readonly token_id?: OneOrMore<number> | undefined
  readonly token_name?: OneOrMore<string> | undefined
  readonly model?: OneOrMore<string> | undefined
  readonly channel?: OneOrMore<string> | undefined
  readonly channel_id?: OneOrMore<number> | undefined
  readonly group?: OneOrMore<string> | undefined
  /** Tiers in which calls were served. */
  readonly service_tier?: OneOrMore<string> | undefined
  /** Regions in which calls were served. */
  readonly region?: OneOrMore<string> | undefined
  readonly session?: OneOrMore<string> | undefined
  /** Why calls missed a prompt cache. */
  readonly cache_break?: OneOrMore<string> | undefined
  readonly id?: OneOrMore<string> | undefined
  /** Calls whose charge has one of these reasons. */
  readonly reasons?: readonly string[] | undefined
  /** Calls that failed for one of these causes. */
  readonly causes?: readonly string[] | undefined
}

/** The dimensions by which daily sums can be grouped; `key` is an API key. */
export const USAGE_DIMENSIONS = ['model', 'user', 'key', 'channel', 'day'] as const

/** A dimension of usage. */
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]
