import { z } from 'zod'
import type { RemainingSpend } from '../domain/remaining-spend.ts'
import type { User } from '../domain/records/user.ts'
import { budgetObject, budgetUses, type OwnedBudget, usageLimitSchema } from './usage-limits.ts'
import type { ManagementServices } from './services.ts'
import { groupBudget, remainingSpendOf, userBudget } from './remaining-spend.ts'

const { budget, budget_period, budget_used, budget_held, budget_resets_at } = usageLimitSchema
/** A budget with its use in the current period, in responses. */
export const budgetFields = { budget, budget_period, budget_used, budget_held, budget_resets_at }

/** A budget that limits the calls of an account. */
export const accountBudgetSchema = z.object({
  subject: z.enum(['user', 'group']),
  name: z.string(),
  ...budgetFields,
})

/** A key that was used recently, with its budget. */
export const recentKeySchema = z.object({
  id: z.int(),
  name: z.string(),
  used_quota: z.int(),
  accessed_time: z.int().describe('Unix seconds; 0 if it was never used'),
  ...budgetFields,
})

/** The budgets of groups, as administrators see them. */
export const groupBudgetsSchema = z.array(z.object({ group: z.string(), ...budgetFields }))

/** What an account may still spend, and the budgets of its user and of the groups that its keys use. */
interface AccountLimits extends RemainingSpend {
  readonly budgets: z.output<typeof accountBudgetSchema>[]
}

export async function accountLimits(
  { store, settings: live, nowMs }: Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>,
  user: User,
): Promise<AccountLimits> {
  const settings = live()
  const hasGroupBudgets = [...settings.groups.values()].some((group) => group.budget)
  const ofKeys = hasGroupBudgets ? await store.read('tokenGroups', { userId: user.id }) : []
  const groups = [...new Set([user.group, ...ofKeys])]
  const named: readonly { subject: 'user' | 'group'; name: string; owned: OwnedBudget }[] = [
    { subject: 'user', name: user.username, owned: userBudget(user) },
    ...groups.map((name) => ({ subject: 'group' as const, name, owned: groupBudget(settings, name) })),
  ]
  const uses = await budgetUses(
    store,
    named.map(({ owned }) => owned),
    nowMs(),
  )
  return {
    ...remainingSpendOf(settings, uses, user),
    budgets: named
      .filter(({ owned }) => owned.budget)
      .map(({ subject, name, owned }) => ({ subject, name, ...budgetObject(owned, uses(owned)) })),
  }
}

/** The most recently used API keys of an account, and how many it has. */
export async function recentKeys(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  userId: number,
): Promise<{ readonly total: number; readonly keys: z.output<typeof recentKeySchema>[] }> {
  const { total, tokens } = await store.read('recentTokens', { userId, limit: RECENT_KEYS })
  const owned = tokens.map(({ id, budget }): OwnedBudget => ({ owner: `t:${id}`, budget }))
  const uses = await budgetUses(store, owned, nowMs())
  const keys = tokens.map(({ id, name, used_quota, accessed_time }, index) => {
    const one = owned[index] as OwnedBudget
    return { id, name, used_quota, accessed_time, ...budgetObject(one, uses(one)) }
  })
  return { total, keys }
}

const RECENT_KEYS = 5

/** The budgets of all groups by name, with their use; groups without a budget have zeros. */
export async function groupBudgets({
  store,
  settings: live,
  nowMs,
}: Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>): Promise<z.output<typeof groupBudgetsSchema>> {
  const settings = live()
  const names = [...settings.groups.keys()].toSorted()
  const owned = names.map((name) => groupBudget(settings, name))
  const uses = await budgetUses(store, owned, nowMs())
  return names.map((group, index) => {
    const one = owned[index] as OwnedBudget
    return { group, ...budgetObject(one, uses(one)) }
  })
}
