import type { BudgetName } from '../../domain/budget.ts'
import type { Db } from './operation.ts'

/** Reads the use of budgets, by their accounts; without those that were never used. */
export async function budgetsUsed(
  db: Db,
  { names }: { readonly names: readonly BudgetName[] },
): Promise<{ readonly name: BudgetName; readonly used: number }[]> {
  const rows = await db
    .selectFrom('budget_periods')
    .select(['account', 'used'])
    .where('account', 'in', names)
    .execute()
  return rows.map(({ account, used }) => ({ name: account as BudgetName, used }))
}
