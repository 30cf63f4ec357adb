import type { UsageFilter } from '../usage-filter.ts'
import { plainTextType, integerType } from './field-types.ts'
import { fieldsWith, declareRecord, type Values } from './record.ts'

/**
 * Numbers of refused calls per half hour. They are stored as long as the half-hour sums of usage.
 * `docs/api.md: Refused calls`.
 */
export const REFUSAL = declareRecord('usage_refusals', {
  /** The half hour, as the number of half hours since 1970-01-01 UTC. */
  slot: { type: integerType(), key: 'part' },
  /** Code of the error that the clients got. */
  code: { type: plainTextType(), key: 'part' },
  /**
   * Id of the API key; 0 if the key was not valid, or if the maximum number of keys is already counted
   * separately.
   */
  token_id: { type: integerType(), key: 'part' },
  user_id: { type: integerType(), key: 'part' },
  calls: { type: integerType() },
})

/** A row with a number of refused calls. */
export type RefusalCount = Values<typeof REFUSAL.fields>

/** Names of the columns that form the primary key. */
export const REFUSAL_KEY_COLUMNS = Object.keys(fieldsWith(REFUSAL.fields, 'key', 'part')) as readonly Exclude<
  keyof RefusalCount,
  'calls'
>[]

/** Columns by which refused calls can be grouped, by the name of the dimension. */
export const REFUSAL_COLUMNS = { code: 'code', token: 'token_id', user: 'user_id' } as const

/** A dimension by which refused calls can be grouped; `none` adds all of them up. */
export type RefusalDimension = keyof typeof REFUSAL_COLUMNS | 'none'

/** All dimensions, in the order in which error messages list them. */
export const REFUSAL_DIMENSIONS = [...Object.keys(REFUSAL_COLUMNS), 'none'] as readonly RefusalDimension[]

/** Selects refused calls that match all given fields. */
export type RefusalFilter = Pick<UsageFilter, 'user_id' | 'username' | 'token_id' | 'token_name'> & {
  readonly code?: string | undefined
}
