import type { Generated } from 'kysely'

/** Columns of users and tokens with the terms of their calls. */
export interface TermsColumns {
  /** Quota units per period; 0 = no budget. */
  budget: Generated<number>
  /** `day`, `week` or `month`; empty = no budget. */
  budget_period: Generated<string>
  /** Rate limits, of all keys of a user together; 0 = off. */
  rate_limit_requests: Generated<number>
  rate_limit_tokens: Generated<number>
  rate_limit_parallel: Generated<number>
  /** Milliseconds; 0 = a minute. */
  rate_limit_window: Generated<number>
}
