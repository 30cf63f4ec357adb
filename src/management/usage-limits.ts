import { z } from 'zod'
import { type Budget, budgetInPeriodAt, type BudgetName, type BudgetOwner } from '../domain/budget.ts'
import type { UsageLimits, UsageLimitChanges } from '../domain/usage-limits.ts'
import type { CallRateLimit } from '../domain/rate-limit.ts'
import { USAGE_LIMIT_FIELDS } from '../domain/records/usage-limits.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { AccountName } from '../store/bank.ts'
import type { Store } from '../store/store.ts'
import { requireQuota } from './input-fields.ts'
import { requestBodySchemas } from './record-schemas.ts'

/**
 * Input fields for the budget and the rate limit of a token or a user; null counts as missing. `docs/api.md:
 * Token`.
 */
export const usageLimitFields = requestBodySchemas(USAGE_LIMIT_FIELDS, 'change')

type GivenUsageLimits = {
  readonly [Name in keyof typeof usageLimitFields]?: z.output<(typeof usageLimitFields)[Name]>
}

/**
 * The fields of the budget and the rate limit as responses show them, and how much of the budget is used in
 * the current period.
 */
export const usageLimitSchema = {
  budget: z.int(),
  budget_period: z.string(),
  budget_used: z.int(),
  budget_held: z.int().describe('quota units held for calls under way, in addition to those used'),
  /** Unix seconds at which the next period of the budget begins; 0 if there is no budget. */
  budget_resets_at: z.int(),
  rate_limit_requests: z.int(),
  rate_limit_tokens: z.int(),
  rate_limit_parallel: z.int(),
  rate_limit_window: z.int(),
  limits_by: z.literal(['operator', '']).meta({
    description: 'operator: an operator gave a part of these, which the holder can only tighten',
  }),
}

/** Budget and rate limit as responses show them. */
export type UsageLimitsObject = z.output<z.ZodObject<typeof usageLimitSchema>>

/**
 * Converts the given fields of a budget and a rate limit to changes; missing fields stay unchanged. Throws if
 * a budget has no period, or exceeds the maximum quota.
 */
export function usageLimitChanges(
  given: GivenUsageLimits,
  before: Budget | undefined,
  settings: Settings,
): UsageLimitChanges {
  return { budget: budgetChange(given, before, settings), rateLimit: rateLimitChange(given) }
}

/** Whether a change gives only the amount of a budget, whose period stays, or only its period. */
export function keepsPartOfBudget({ budget, budget_period: period }: GivenUsageLimits): boolean {
  return Boolean(budget) !== Boolean(period)
}

function budgetChange(
  { budget, budget_period: given }: GivenUsageLimits,
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
    throw new GatewayError(
      'invalid_request',
      `budget_period: expected ${USAGE_LIMIT_FIELDS.budget_period.type.expected}`,
    )
  return { amount, period }
}

function rateLimitChange(given: GivenUsageLimits): Partial<CallRateLimit> {
  const { rate_limit_requests: requests, rate_limit_tokens: tokens, rate_limit_parallel: parallel } = given
  const seconds = given.rate_limit_window
  return {
    ...(typeof requests === 'number' && { requests }),
    ...(typeof tokens === 'number' && { tokens }),
    ...(typeof parallel === 'number' && { parallel }),
    ...(typeof seconds === 'number' && { windowMs: seconds * 1000 }),
  }
}

/** A token or a user, with its budget and its rate limit. */
export interface LimitedOwner extends UsageLimits {
  readonly owner: BudgetOwner
  /** Whether an operator set any of these limits. */
  readonly isByOperator: boolean
}

export type OwnedBudget = Pick<LimitedOwner, 'budget' | 'owner'>

/** How much of a budget is used in its current period. */
export interface BudgetUse {
  /** Quota units that were charged in the current period. */
  readonly used: number
  /** Quota units that running calls have reserved, in addition to `used`. */
  readonly held: number
  /** Start of the next period, in Unix seconds. */
  readonly resetsAt: number
  /** Whether the budget refuses calls: nothing is left, or it refused the latest call. */
  readonly isUsedUp: boolean
}

/** Returns how much of a budget is used; undefined if the owner has no budget. */
export type BudgetUses = (owned: OwnedBudget) => BudgetUse | undefined

/** Reads how much of each budget is used in its current period. */
export async function budgetUses(
  store: Pick<Store, 'read'>,
  all: readonly OwnedBudget[],
  nowMs: number,
): Promise<BudgetUses> {
  const names = all.flatMap(({ budget, owner }) =>
    budget ? [budgetInPeriodAt(budget, owner, nowMs).name] : [],
  )
  const [stored, held] =
    names.length === 0
      ? [[], new Map<AccountName, number>()]
      : await Promise.all([store.read('readBudgetUse', { names }), readHeldSums(store, names)])
  const byName = new Map<BudgetName, (typeof stored)[number]>(stored.map((one) => [one.name, one]))
  return ({ budget, owner }) => {
    if (!budget) return undefined
    const { name, resetsMs } = budgetInPeriodAt(budget, owner, nowMs)
    const { used, full } = byName.get(name) ?? { used: 0, full: null }
    // `full` records the last call that was refused because too little was left. A charge after that shows that
    // smaller calls still fit, so the budget does not count as used up.
    const isRefused = full !== null && full.amount >= budget.amount && full.used === used
    return {
      used,
      held: held.get(name) ?? 0,
      resetsAt: resetsMs / 1000,
      isUsedUp: isRefused || used >= budget.amount,
    }
  }
}

/**
 * Reads how many quota units running calls have reserved on each account; accounts without any are left out.
 */
export async function readHeldSums(
  store: Pick<Store, 'read'>,
  accounts: readonly AccountName[],
): Promise<ReadonlyMap<AccountName, number>> {
  const sums = await store.read('heldOnAccounts', { accounts })
  return new Map(sums.map(({ account, held }) => [account, held]))
}

/** A budget as responses show it, and how much of it is used in the current period. */
export function budgetObject(
  { budget }: OwnedBudget,
  use: BudgetUse | undefined,
): Pick<UsageLimitsObject, 'budget' | 'budget_period' | 'budget_used' | 'budget_held' | 'budget_resets_at'> {
  return {
    budget: budget?.amount ?? 0,
    budget_period: budget?.period ?? '',
    budget_used: use?.used ?? 0,
    budget_held: use?.held ?? 0,
    budget_resets_at: use?.resetsAt ?? 0,
  }
}

/** The limits of a token or a user as responses show them, and how much of the budget is used. */
export function usageLimitsWithUse(owner: LimitedOwner, uses: BudgetUses): UsageLimitsObject {
  const { rateLimit, isByOperator } = owner
  return {
    ...budgetObject(owner, uses(owner)),
    rate_limit_requests: rateLimit.requests,
    rate_limit_tokens: rateLimit.tokens,
    rate_limit_parallel: rateLimit.parallel,
    rate_limit_window: Math.ceil(rateLimit.windowMs / 1000),
    limits_by: isByOperator ? 'operator' : '',
  }
}

/** Reads the limits of tokens or users, and converts them for responses, in the given order. */
export async function usageLimitsObjects(
  store: Pick<Store, 'read'>,
  owners: readonly LimitedOwner[],
  nowMs: number,
): Promise<UsageLimitsObject[]> {
  const uses = await budgetUses(store, owners, nowMs)
  return owners.map((owner) => usageLimitsWithUse(owner, uses))
}

/** Reads the limits of a token or a user, and converts them for a response. */
export async function usageLimitsObject(
  store: Pick<Store, 'read'>,
  owner: LimitedOwner,
  nowMs: number,
): Promise<UsageLimitsObject> {
  const [limits] = await usageLimitsObjects(store, [owner], nowMs)
  return limits as UsageLimitsObject
}
