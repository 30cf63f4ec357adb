import { z } from 'zod'
import type { Remaining } from '../domain/remaining.ts'
import type { User } from '../domain/records/user.ts'
import { budgetObject, budgetUses, type OwnedBudget, usageLimitSchema } from './usage-limits.ts'
import type { ManagementServices } from './services.ts'
import { groupBudget, remainingOf, userBudget } from './remaining.ts'

const { budget, budget_period, budget_used, budget_resets_at } = usageLimitSchema
const budgetFields = { budget, budget_period, budget_used, budget_resets_at }

/** A budget that binds the calls of an account. */
export const accountBudgetSchema = z.object({
  subject: z.enum(['user', 'group']),
  name: z.string(),
  ...budgetFields,
})

/** The budgets of groups, as administrators see them. */
export const groupBudgetsSchema = z.array(z.object({ group: z.string(), ...budgetFields }))

/** What is left to an account, and the budgets of its user and of the groups that its keys call with. */
interface AccountLimits extends Remaining {
  readonly budgets: z.output<typeof accountBudgetSchema>[]
}

/** Reads the limits of an account. */
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
    ...remainingOf(settings, uses, user),
    budgets: named
      .filter(({ owned }) => owned.budget)
      .map(({ subject, name, owned }) => ({ subject, name, ...budgetObject(owned, uses(owned)) })),
  }
}

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
