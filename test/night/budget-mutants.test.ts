import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { storm } from '../fixtures/storm.ts'
import { BUDGET_DEFECTS, type BudgetDefect } from './defects/budget.ts'

const LIMIT = { timeout: 300_000 }

let copy: PatchedCopy
beforeAll(async () => {
  copy = await patchedProgram(BUDGET_DEFECTS)
})
afterAll(() => copy?.discard())

/** Broken promises in a storm with kills whose calls all count against budgets; stops at the first ones. */
async function brokenBy(defect: BudgetDefect | undefined, rounds: number): Promise<string> {
  const env = defect === undefined ? {} : { DEFECT: defect }
  return (await storm({ rounds, seed: 11, clients: 32, root: copy.root, env })).broken.join('\n')
}

const OVERSPENT = /the budget \S+ of 4000 is overspent/
const OTHER_SUM = /the budget \S+ has \d+ used, its calls were charged \d+/

test.each<[string, BudgetDefect, number, RegExp]>([
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
