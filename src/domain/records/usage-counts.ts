import type { Usage } from '@sluice/wire/usage'
import { type CountColumn, type StoredTokenKind, TOKEN_KINDS, type TokenKindRow } from '../token-kinds.ts'
import { integerType } from './field-types.ts'
import type { Row } from './record.ts'

const count = <const C extends CountColumn>({ name, as, ...more }: C) => ({
  ...more,
  type: integerType(),
  column: name as C['name'],
  as: (as ?? name) as C extends { readonly as: infer As } ? As : C['name'],
  default: 0,
})

type TokenCounts = {
  readonly [Kind in StoredTokenKind as Kind['count']]: ReturnType<typeof count<Kind['column']>>
}

function tokenCounts(isWanted: (kind: TokenKindRow) => boolean): TokenCounts {
  const kinds = TOKEN_KINDS.filter(isWanted)
  return Object.fromEntries(
    kinds.flatMap(({ count: name, column }) => (column ? [[name, count(column)]] : [])),
  ) as TokenCounts
}

/**
 * The counts in a call's usage, as stored in the usage log and in the daily sums; responses and the CSV
 * export list them in this order. They do not overlap, except that some are part of another, such as
 * reasoning. All are non-negative safe integers.
 */
export const USAGE_COUNTS = {
  ...tokenCounts(({ partOf }) => !partOf),
  reasoning: count({ name: 'reasoning_tokens', about: 'The part of completion_tokens that was reasoning' }),
  /** Number of web searches that the provider made. */
  webSearches: count({ name: 'web_searches' }),
  ...tokenCounts(({ partOf, side }) => partOf !== undefined && side === 'prompt'),
  ...tokenCounts(({ partOf, side }) => partOf !== undefined && side === 'output'),
  /** Seconds of audio, rounded up. */
  seconds: count({ name: 'seconds', about: 'Seconds of audio that was transcribed or spoken' }),
  /** Number of characters, counted as Unicode code points. */
  characters: count({ name: 'characters', about: 'Characters that were spoken' }),
  images: count({ name: 'images', about: 'Images that were returned' }),
  searchUnits: count({ name: 'search_units', about: 'Search units of rerank calls' }),
} as const satisfies { readonly [Count in keyof Usage]: unknown }

/** Database columns of the counts in a call's usage. */
export type UsageColumns = Readonly<Row<typeof USAGE_COUNTS>>
