import type { Budget } from './budget.ts'
import type { RateLimit } from './rate-limit.ts'
import type { CallRateLimit, CallTerms, TermChanges } from './call-terms.ts'
import type { OperatorGrants } from './operator-grants.ts'

/** Terms of a token that were given by an operator. The token's holder can only tighten them. */
export interface OperatorTerms {
  readonly budget?: Budget
  readonly rateLimit?: CallRateLimit
  /** Quota, models, addresses and expiry. */
  readonly grants?: OperatorGrants
}

/** The absence of such terms. */
export const NO_OPERATOR_TERMS: OperatorTerms = Object.freeze({})

/** Parses the operator's terms of a token; an empty text means none. */
export function operatorTermsFrom(text: string): OperatorTerms {
  return text === '' ? NO_OPERATOR_TERMS : (JSON.parse(text) as OperatorTerms)
}

/** Formats the operator's terms for `operatorTermsFrom`; equal terms have equal texts. */
export function operatorTermsText({ budget, rateLimit, grants }: OperatorTerms): string {
  return budget || rateLimit || grants ? JSON.stringify({ budget, rateLimit, grants }) : ''
}

/** The counts of a rate limit, with their names over HTTP. */
const COUNTS = [
  ['requests', 'rate_limit_requests'],
  ['tokens', 'rate_limit_tokens'],
  ['parallel', 'rate_limit_parallel'],
] as const

/** Whether a limit restricts anything. */
export function isLimited({ requests, tokens, parallel }: CallRateLimit): boolean {
  return requests > 0 || tokens > 0 || parallel > 0
}

/** Whether an operator gave any of the terms of a token. */
export function hasOperatorTerms({ operator_terms }: { readonly operator_terms: OperatorTerms }): boolean {
  const { budget, rateLimit, grants } = operator_terms
  return budget !== undefined || rateLimit !== undefined || grants !== undefined
}

/** Whether a limit counts anything within its window. */
function isCounted({ requests, tokens }: RateLimit): boolean {
  return requests > 0 || tokens > 0
}

/** The operator's terms after an operator has changed a token whose window is `windowMs`. */
export function afterOperatorChange(
  before: OperatorTerms,
  { budget, rateLimit }: TermChanges,
  windowMs: number,
): OperatorTerms {
  const given = budget === undefined ? before.budget : budget
  const present = before.rateLimit
  const limit = {
    requests: 0,
    tokens: 0,
    parallel: 0,
    ...present,
    // If the operator limits no counts, the holder may choose the window.
    windowMs: present && isCounted(present) ? present.windowMs : windowMs,
    ...rateLimit,
  }
  const { grants } = before
  return {
    ...(given && { budget: given }),
    ...(isLimited(limit) && { rateLimit: limit }),
    ...(grants && { grants }),
  }
}

/**
 * The first field in which terms are looser than the operator's, with the operator's value; undefined if
 * there is none. Another period or window counts as looser, because counting would start from zero.
 */
export function loosened(
  { budget, rateLimit }: CallTerms,
  { budget: most, rateLimit: limit }: OperatorTerms,
): { readonly field: string; readonly most: string | number } | undefined {
  if (most) {
    if (!budget || budget.amount > most.amount) return { field: 'budget', most: most.amount }
    if (budget.period !== most.period) return { field: 'budget_period', most: most.period }
  }
  if (!limit) return undefined
  for (const [name, field] of COUNTS)
    if (limit[name] > 0 && (rateLimit[name] === 0 || rateLimit[name] > limit[name]))
      return { field, most: limit[name] }
  if (isCounted(limit) && rateLimit.windowMs !== limit.windowMs)
    return { field: 'rate_limit_window', most: limit.windowMs / 1000 }
  return undefined
}
