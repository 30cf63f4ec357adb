import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Patch } from '../fixtures/patch.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { storm } from '../fixtures/storm.ts'

/** Guards of budgets. Each process lacks one of them, which an environment variable names. */
type Defect =
  | 'no gate'
  | 'no hold'
  | 'no charge in memory'
  | 'no charge in the file'
  | 'no charge of a crash'
  | 'no memory of use'
  | 'a later period'

const has = (defect: Defect): string => `process.env['DEFECT'] === ${JSON.stringify(defect)}`

const DEFECTS: readonly Patch[] = [
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

const LIMIT = { timeout: 300_000 }

let copy: PatchedCopy
beforeAll(async () => {
  copy = await patchedProgram(DEFECTS)
})
afterAll(() => copy?.discard())

/** Broken promises in a storm with kills whose calls all count against budgets; stops at the first ones. */
async function brokenBy(defect: Defect | undefined, rounds: number): Promise<string> {
  const env = defect === undefined ? {} : { DEFECT: defect }
  return (await storm({ rounds, seed: 11, clients: 32, root: copy.root, env })).broken.join('\n')
}

const OVERSPENT = /the budget \S+ of 4000 is overspent/
const OTHER_SUM = /the budget \S+ has \d+ used, its calls were charged \d+/

test.each<[string, Defect, number, RegExp]>([
  ['are admitted whatever is left of it', 'no gate', 10, OVERSPENT],
  ['do not hold it', 'no hold', 60, OVERSPENT],
  ['are not charged to it until the next start', 'no charge in memory', 10, OVERSPENT],
  ['are not charged to it in the file', 'no charge in the file', 1, /no budget was used|has 0 used/],
  ['that a crash ends are not charged to it', 'no charge of a crash', 10, OTHER_SUM],
  ['are admitted after a start as if it were unused', 'no memory of use', 10, OVERSPENT],
  ['count for another period than they began in', 'a later period', 1, OTHER_SUM],
])(
  'the load test with kills detects a program in which calls on a budget %s',
  LIMIT,
  async (_, defect, rounds, words) => {
    expect(await brokenBy(defect, rounds)).toMatch(words)
  },
)

test(
  'the program without injected defects passes the load test that kills it during calls on budgets',
  LIMIT,
  async () => {
    expect(await brokenBy(undefined, 3)).toBe('')
  },
)
