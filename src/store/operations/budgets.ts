import { sql } from 'kysely'
import {
  BUDGET_PERIODS,
  type Budget,
  budgetInPeriodAt,
  type BudgetName,
  type BudgetOwner,
  budgetPeriodAt,
} from '../../domain/budget.ts'
import { type Db, inChunks } from './operation.ts'

const DAY_MS = 86_400_000
/**
 * Days for which the account of a budget is kept after its period began. No call lasts that long, and no
 * clock is wrong by that much.
 */
const KEPT_DAYS = 100

interface Pruning {
  readonly nowMs: number
  /** Maximum number of accounts that one write removes. */
  readonly limit: number
}

/**
 * Removes the accounts of budgets whose period ended long ago, and the records of their crossed thresholds.
 * Resolves to the number of accounts removed.
 */
export function pruneBudgets(db: Db, pruning: Pruning): Promise<number> {
  return prune(db, pruning, sql`true`)
}

/**
 * Removes accounts as `pruneBudgets` does, from a database that several nodes share. Keeps an account if some
 * of its amount is lent to a node.
 */
export function pruneLentBudgets(db: Db, pruning: Pruning): Promise<number> {
  return prune(db, pruning, sql`leased = 0`)
}

async function prune(db: Db, { nowMs, limit }: Pruning, condition: ReturnType<typeof sql>): Promise<number> {
  for (const period of BUDGET_PERIODS) {
    const { startMs } = budgetPeriodAt(period, nowMs - KEPT_DAYS * DAY_MS)
    const [first, end] = [`b:${period}:`, `b:${period}:${new Date(startMs).toISOString().slice(0, 10)}`]
    const { rows } = await sql<{ account: string }>`
      delete from budget_periods where account in (
        select account from budget_periods where account >= ${first} and account < ${end} and ${condition} limit ${limit}
      ) and ${condition} returning account`.execute(db)
    const accounts = rows.map(({ account }) => account)
    if (accounts.length === 0) continue
    await db.deleteFrom('budget_crossings').where('account', 'in', accounts).execute()
    return accounts.length
  }
  return 0
}

/** Quota units that were spent elsewhere in the present period of a budget, if there is one. */
export interface ImportedBudgetUse {
  readonly budgetUsed?: number
}

/** Quota units that an owner has spent elsewhere in the present period of its budget. */
interface BudgetUseOf extends ImportedBudgetUse {
  readonly owner: BudgetOwner
  readonly budget?: Budget | null | undefined
}

/** Maximum number of rows in one statement, because databases limit the number of parameters. */
const MAX_ROWS = 500

/**
 * Enters what was spent in the present periods of budgets, where anything was. Periods in which something was spent here
 * are unchanged.
 */
export async function openBudgets(db: Db, spent: readonly BudgetUseOf[], nowSeconds: number): Promise<void> {
  const rows = spent.flatMap(({ owner, budget, budgetUsed = 0 }) => {
    if (!budget || budgetUsed === 0) return []
    const { name } = budgetInPeriodAt(budget, owner, nowSeconds * 1000)
    return [{ account: name, owner, amount: budget.amount, used: budgetUsed }]
  })
  const insert = (some: readonly (typeof rows)[number][]) =>
    db
      .insertInto('budget_periods')
      .values(some)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  await inChunks(rows, insert, MAX_ROWS)
}

/** The use of a budget in one period. */
export interface StoredBudgetUse {
  readonly name: BudgetName
  readonly used: number
  /**
   * Amount and use of the budget, in quota units, when it was first used up, or when a call was first refused
   * because of it; null if never.
   */
  readonly full: { readonly amount: number; readonly used: number } | null
}

/** Reads the use of budgets by the names of their accounts. Budgets that were never used are left out. */
export async function readBudgetUse(
  db: Db,
  { names }: { readonly names: readonly BudgetName[] },
): Promise<StoredBudgetUse[]> {
  const rows = await db
    .selectFrom('budget_periods as period')
    .leftJoin('budget_crossings as full', (join) =>
      join.onRef('full.account', '=', 'period.account').on('full.percent', '=', 100),
    )
    .select(['period.account', 'period.used', 'full.amount as full_amount', 'full.used as full_used'])
    .where('period.account', 'in', names)
    .execute()
  return rows.map(({ account, used, full_amount: amount, full_used }) => ({
    name: account as BudgetName,
    used,
    full: amount === null || full_used === null ? null : { amount, used: full_used },
  }))
}
