import type { UsageFilter } from '../usage-filter.ts'
import { plainText, integerWithin } from './field-types.ts'
import { fieldsWith, declareRecord, type Values } from './record.ts'

/** Counters of refused calls, kept as long as the half-hour sums. `docs/api.md: Refused calls`. */
export const REFUSAL = declareRecord('usage_refusals', {
  /** Number of half hours since 1970-01-01, UTC. */
  slot: { type: integerWithin(), key: 'part' },
  /** Code of the error that the clients got. */
  code: { type: plainText(), key: 'part' },
  /** 0 for no valid key, or for one beyond the maximum number of counted keys. */
  token_id: { type: integerWithin(), key: 'part' },
  user_id: { type: integerWithin(), key: 'part' },
  calls: { type: integerWithin() },
})

/** Counter of refused calls. */
export type RefusalCount = Values<typeof REFUSAL.fields>

/** Columns of the primary key. */
export const REFUSAL_KEY = Object.keys(fieldsWith(REFUSAL.fields, 'key', 'part')) as readonly Exclude<
  keyof RefusalCount,
  'calls'
>[]

/** Columns by the dimension that groups refused calls. */
export const REFUSAL_COLUMNS = { code: 'code', token: 'token_id', user: 'user_id' } as const

/** Dimension that groups refused calls; `none` sums all of them. */
export type RefusalDimension = keyof typeof REFUSAL_COLUMNS | 'none'

/** All dimensions, in the order of messages. */
export const REFUSAL_DIMENSIONS = [...Object.keys(REFUSAL_COLUMNS), 'none'] as readonly RefusalDimension[]

/** Selects refused calls that match all given fields. */
export type RefusalFilter = Pick<UsageFilter, 'user_id' | 'username' | 'token_id' | 'token_name'> & {
  readonly code?: string | undefined
}
