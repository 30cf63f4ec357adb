import { z } from 'zod'
import { type Budget, budgetAt, type BudgetName, type BudgetOwner } from '../domain/budget.ts'
import type { CallTerms, TermChanges } from '../domain/call-terms.ts'
import type { CallRateLimit } from '../domain/rate-limit.ts'
import { TERMS } from '../domain/records/terms.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { Store } from '../store/store.ts'
import { requireQuota } from './input-fields.ts'
import { bodyShape } from './record-schemas.ts'

/**
 * Fields of the budget and the rate limit of a token or a user; null counts as absent. `docs/api.md: Token`.
 */
export const termFields = bodyShape(TERMS, 'change')

type GivenTerms = { readonly [Name in keyof typeof termFields]?: z.output<(typeof termFields)[Name]> }

/** The same fields in responses, with the use of the budget in the current period. */
export const termSchema = {
  budget: z.int(),
  budget_period: z.string(),
  budget_used: z.int(),
  /** Unix seconds; 0 if there is no budget. */
  budget_resets_at: z.int(),
  rate_limit_requests: z.int(),
  rate_limit_tokens: z.int(),
  rate_limit_parallel: z.int(),
  rate_limit_window: z.int(),
  limits_by: z.literal(['operator', '']).meta({
    description: 'operator: an operator gave a part of these, which the holder can only tighten',
  }),
}

/** Budget and rate limit in responses. */
export type TermsObject = z.output<z.ZodObject<typeof termSchema>>

/**
 * The changes that these fields make; absent fields stay unchanged. Throws if a budget has no period, or
 * exceeds the maximum quota.
 */
export function termChanges(given: GivenTerms, before: Budget | undefined, settings: Settings): TermChanges {
  return { budget: budgetChange(given, before, settings), rateLimit: rateLimitChange(given) }
}

function budgetChange(
  { budget, budget_period: given }: GivenTerms,
  before: Budget | undefined,
  settings: Settings,
): Budget | null | undefined {
  const amount = budget ?? (given ? before?.amount : undefined)
  if (amount === undefined || amount === null) {
    if (given) throw new GatewayError('invalid_request', 'budget: expected a budget for that period')
    return undefined
  }
  if (amount === 0) return null
  requireQuota('budget', amount, 0, settings)
  const period = given || before?.period
  if (!period)
    throw new GatewayError('invalid_request', `budget_period: expected ${TERMS.budget_period.type.expected}`)
  return { amount, period }
}

function rateLimitChange(given: GivenTerms): Partial<CallRateLimit> {
  const { rate_limit_requests: requests, rate_limit_tokens: tokens, rate_limit_parallel: parallel } = given
  const seconds = given.rate_limit_window
  return {
    ...(typeof requests === 'number' && { requests }),
    ...(typeof tokens === 'number' && { tokens }),
    ...(typeof parallel === 'number' && { parallel }),
    ...(typeof seconds === 'number' && { windowMs: seconds * 1000 }),
  }
}

/** An owner of terms. */
export interface TermsOwner extends CallTerms {
  readonly owner: BudgetOwner
  /** Whether an operator gave any of the terms. */
  readonly isByOperator: boolean
}

/** The terms in responses, for each owner in the given order. */
export async function termsObjects(
  store: Pick<Store, 'read'>,
  owners: readonly TermsOwner[],
  nowMs: number,
): Promise<TermsObject[]> {
  const names = owners.flatMap(({ budget, owner }) => (budget ? [budgetAt(budget, owner, nowMs).name] : []))
  const used = names.length === 0 ? [] : await store.read('readBudgetUse', { names })
  const usedOf = new Map<BudgetName, number>(used.map(({ name, used }) => [name, used]))
  return owners.map(({ budget, owner, rateLimit, isByOperator }) => {
    const current = budget && budgetAt(budget, owner, nowMs)
    return {
      budget: budget?.amount ?? 0,
      budget_period: budget?.period ?? '',
      budget_used: current ? (usedOf.get(current.name) ?? 0) : 0,
      budget_resets_at: current ? current.resetsMs / 1000 : 0,
      rate_limit_requests: rateLimit.requests,
      rate_limit_tokens: rateLimit.tokens,
      rate_limit_parallel: rateLimit.parallel,
      rate_limit_window: Math.ceil(rateLimit.windowMs / 1000),
      limits_by: isByOperator ? 'operator' : '',
    }
  })
}

/** The terms of one owner in responses. */
export async function termsObject(
  store: Pick<Store, 'read'>,
  owner: TermsOwner,
  nowMs: number,
): Promise<TermsObject> {
  const [terms] = await termsObjects(store, [owner], nowMs)
  return terms as TermsObject
}
