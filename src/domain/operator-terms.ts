import type { Budget } from './budget.ts'
import type { RateLimit } from './rate-limit.ts'
import type { CallRateLimit, CallTerms, TermChanges } from './call-terms.ts'
import type { OperatorGrants } from './operator-grants.ts'

/** Terms of a token that an operator gave, and that its holder can only tighten. */
export interface OperatorTerms {
  readonly budget?: Budget
  readonly rateLimit?: CallRateLimit
  /** Quota, models, addresses and expiry. */
  readonly grants?: OperatorGrants
}

/** No such terms. */
export const NO_OPERATOR_TERMS: OperatorTerms = Object.freeze({})

/** Reads the operator's terms of a token; an empty text has none. */
export function operatorTermsFrom(text: string): OperatorTerms {
  return text === '' ? NO_OPERATOR_TERMS : (JSON.parse(text) as OperatorTerms)
}

/** Text of the operator's terms, for `operatorTermsFrom`; equal terms have the same. */
export function operatorTermsText({ budget, rateLimit, grants }: OperatorTerms): string {
  return budget || rateLimit || grants ? JSON.stringify({ budget, rateLimit, grants }) : ''
}

/** Fields of a rate limit that count, by their names over HTTP. */
const COUNTS = [
  ['requests', 'rate_limit_requests'],
  ['tokens', 'rate_limit_tokens'],
  ['parallel', 'rate_limit_parallel'],
] as const

/** Whether a limit limits anything. */
export function isLimited({ requests, tokens, parallel }: CallRateLimit): boolean {
  return requests > 0 || tokens > 0 || parallel > 0
}

/** Whether an operator gave any of a token's terms. */
export function hasOperatorTerms({ operator_terms }: { readonly operator_terms: OperatorTerms }): boolean {
  const { budget, rateLimit, grants } = operator_terms
  return budget !== undefined || rateLimit !== undefined || grants !== undefined
}

/** Whether a limit counts anything in its window. */
function isCounted({ requests, tokens }: RateLimit): boolean {
  return requests > 0 || tokens > 0
}

/** The operator's terms after a change that an operator makes of a token whose window is `windowMs`. */
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
    // Without the operator's counts the window is the holder's matter.
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
 * The field by which terms are looser than the operator's, and its value there; undefined where they are not.
 * Another period or window is looser, because it would count anew.
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
