import type { BudgetName } from '../../domain/budget.ts'
import type { Db } from './operation.ts'

/**
 * Notes that a call was refused because it may cost more than is left of a budget: that budget counts as
 * crossed, once in its period, and receivers of alerts are told. `amount`: 0 = unknown.
 */
export async function noteExceededBudget(
  db: Db,
  { name, amount }: { readonly name: BudgetName; readonly amount: number },
): Promise<void> {
  const period = await db
    .selectFrom('budget_periods')
    .select(['amount', 'used'])
    .where('account', '=', name)
    .executeTakeFirst()
  const { used } = period ?? { used: 0 }
  for (const percent of [80, 100])
    await db
      .insertInto('budget_crossings')
      .values({ account: name, percent, amount: amount || (period?.amount ?? 0), used })
      .onConflict((conflict) => conflict.columns(['account', 'percent']).doNothing())
      .execute()
}
