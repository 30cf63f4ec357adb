import { BUDGET_PERIODS } from '../budget.ts'
import { oneOfType, integerType } from './field-types.ts'
import type { Fields, Row } from './record.ts'

/** Maximum of each count in a rate limit; `MAX_WINDOW_SECONDS` is the maximum of its window. */
const MAX_COUNT = 1_000_000_000_000
const MAX_WINDOW_SECONDS = 2_147_483

const count = integerType(`a whole number from 0 (no limit) to ${MAX_COUNT}`, {
  minimum: 0,
  maximum: MAX_COUNT,
})

const TERM = { default: 0, audit: true, admission: 'heed', edit: 'holder', shown: false } as const

/** Columns of a rate limit: of a key, or of all keys of a user together. */
export const RATE_LIMIT = {
  /** Maximum number of requests per window. 0 means no limit; so it does for tokens and parallel calls. */
  rate_limit_requests: { ...TERM, type: count },
  rate_limit_tokens: { ...TERM, type: count },
  rate_limit_parallel: { ...TERM, type: count },
  /** Window in seconds, although the column contains milliseconds; 0 means a minute. */
  rate_limit_window: {
    ...TERM,
    type: {
      ...integerType(`whole seconds from 1 to ${MAX_WINDOW_SECONDS}`, {
        minimum: 1,
        maximum: MAX_WINDOW_SECONDS,
      }),
      encode: (seconds: number) => seconds * 1000,
      decode: (milliseconds: number) => Math.round(milliseconds / 1000),
    },
  },
} as const satisfies Fields

export type RateLimitName = keyof typeof RATE_LIMIT

/** Database columns for the budget and rate limit of a token or a user. */
export const USAGE_LIMIT_FIELDS = {
  /** Quota units per period; 0 for no budget. */
  budget: {
    ...TERM,
    type: integerType('a whole number of quota units, or 0 for no budget', { minimum: 0 }),
  },
  /** The period after which the budget starts anew; empty if there is no budget. */
  budget_period: {
    ...TERM,
    type: oneOfType([...BUDGET_PERIODS, ''], `one of ${BUDGET_PERIODS.join(', ')}`),
    default: '',
  },
  ...RATE_LIMIT,
} as const satisfies Fields

/** Columns of a budget and a rate limit. */
export type UsageLimitColumns = Readonly<Row<typeof USAGE_LIMIT_FIELDS>>
