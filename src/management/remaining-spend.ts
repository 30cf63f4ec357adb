import { z } from 'zod'
import { leastRemaining, type RemainingSpend, SPENDING_LIMITS } from '../domain/remaining-spend.ts'
import type { Token } from '../domain/records/token.ts'
import type { User } from '../domain/records/user.ts'
import type { Settings } from '../domain/settings.ts'
import type { BudgetUses, OwnedBudget } from './usage-limits.ts'

/**
 * What may still be spent, as responses show it. Quota reserved by running calls is not subtracted.
 * `docs/api.md: Token`.
 */
export const remainingSchema = {
  left: z.int().nullable().describe('quota units; null if nothing limits it'),
  left_by: z.enum(SPENDING_LIMITS).nullable().describe('the limit that has the least left'),
}

type Holder = Pick<User, 'id' | 'quota' | 'unlimited_quota' | 'group' | 'budget'>
type Key = Pick<Token, 'id' | 'group' | 'budget' | 'unlimited_quota' | 'remain_quota'>

export function userBudget({ id, budget }: Pick<User, 'id' | 'budget'>): OwnedBudget {
  return { owner: `u:${id}`, budget }
}

/** The budget of a group, which may not exist. */
export function groupBudget({ groups }: Settings, name: string): OwnedBudget {
  return { owner: `g:${name}`, budget: groups.get(name)?.budget }
}

/** The budgets against which calls count: those of a token, or without a token those of a user. */
export function budgetsOf(
  settings: Settings,
  user: Pick<User, 'id' | 'group' | 'budget'>,
  token?: Pick<Token, 'id' | 'group' | 'budget'>,
) {
  return {
    ...(token && { key_budget: { owner: `t:${token.id}` as const, budget: token.budget } }),
    user_budget: userBudget(user),
    group_budget: groupBudget(settings, token?.group || user.group),
  } satisfies Record<string, OwnedBudget>
}

/** How much the calls of a token, or without a token those of a user, may still spend. */
export function remainingSpendOf(
  settings: Settings,
  uses: BudgetUses,
  user: Holder,
  token?: Key,
): RemainingSpend {
  const budgets = Object.entries(budgetsOf(settings, user, token)).map(([name, owned]) => {
    const use = uses(owned)
    return [name, use && owned.budget ? owned.budget.amount - use.used : undefined] as const
  })
  return leastRemaining({
    ...(token && !token.unlimited_quota && { key: token.remain_quota }),
    ...(!user.unlimited_quota && { user: user.quota }),
    ...Object.fromEntries(budgets),
  })
}

/** Whether a budget of the token, its user or its group is used up, so that calls are refused. */
export function isStoppedByBudget(
  settings: Settings,
  uses: BudgetUses,
  user: Pick<User, 'id' | 'group' | 'budget'>,
  token: Pick<Token, 'id' | 'group' | 'budget'>,
): boolean {
  return Object.values(budgetsOf(settings, user, token)).some((owned) => uses(owned)?.isUsedUp)
}
