import type { Patch } from '../../fixtures/patch.ts'

/** Guards of budgets. Each process lacks one of them, which an environment variable names. */
export type BudgetDefect =
  | 'no gate'
  | 'no hold'
  | 'no charge in memory'
  | 'no charge in the file'
  | 'no charge of a crash'
  | 'no memory of use'
  | 'a later period'

const has = (defect: BudgetDefect): string => `process.env['DEFECT'] === ${JSON.stringify(defect)}`

export const BUDGET_DEFECTS: readonly Patch[] = [
  {
    file: 'src/accounts/ledger/charged-balances.ts',
    text: 'for (const one of budgets) free =',
    by: `for (const one of ${has('no gate')} ? [] : budgets) free =`,
  },
  // A hold is added, grows and is released.
  ...['{\n    balance.hold(amount)', 'balance.hold(by)', '{\n    balance.hold(-amount)'].map((change) => ({
    file: 'src/accounts/ledger/charged-balances.ts',
    text: `forEachBalance(payer, (balance) => ${change}`,
    by: `forEachBalance(${has('no hold')} ? { account: payer.account, budgets: [] } : payer, (balance) => ${change}`,
  })),
  {
    file: 'src/accounts/ledger/charged-balances.ts',
    text: 'forEachBalance(payer, (balance) => balance.charge(quota))',
    by: `forEachBalance(${has('no charge in memory')} ? { account: payer.account, budgets: [] } : payer, (balance) => balance.charge(quota))`,
  },
  {
    file: 'src/store/sqlite/ledger-rows.ts',
    text: "if (call.budgets !== '') this",
    by: `if (call.budgets !== '' && !(${has('no charge in the file')})) this`,
  },
  {
    file: 'src/store/sqlite/hold-statements.ts',
    text: 'budgets: formatBudgetList(',
    by: `budgets: ${has('no charge of a crash')} ? '' : formatBudgetList(`,
  },
  {
    file: 'src/accounts/ledger/local-accounts.ts',
    text: 'new Balance(0, amount - used, used)',
    by: `new Balance(0, ${has('no memory of use')} ? amount : amount - used, used)`,
  },
  {
    file: 'src/domain/budget.ts',
    text: 'const { startMs, endMs } = budgetPeriodAt(period, atMs)\n  const date',
    by: `const { startMs, endMs } = budgetPeriodAt(period, atMs + (${has('a later period')} ? 40 * DAY_MS : 0))\n  const date`,
  },
]
