import { describe, expect, test } from 'vitest'
import { withoutCrashes } from '../fixtures/own-postgres.ts'
import type { Patch } from '../fixtures/patch.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { POOR_ACCOUNTS, TIGHT_BUDGETS } from '../nodes/accounts.ts'
import { killNodes } from '../nodes/fault-injection.ts'
import { nodesStorm, type NodesStormPlan } from '../nodes/nodes-storm.ts'
import {
  LOST_ANSWERS,
  NOT_IDEMPOTENT,
  NO_RECOVERY,
  RARE_REPORTS,
  RELEASE_FIRST,
  UNBOUNDED_BUDGETS,
  UNCHARGED_BUDGETS,
} from './defects/nodes.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()

async function brokenBy(patches: readonly Patch[], plan: Partial<NodesStormPlan> = {}): Promise<string> {
  const copy = await patchedProgram(patches)
  try {
    const report = await nodesStorm({
      seed,
      seconds: 8,
      clientsEach: 12,
      faults: [],
      root: copy.root,
      ...plan,
    })
    console.info({ complete: report.complete, broken: report.broken.length, first: report.broken[0] })
    return report.broken.join('\n')
  } finally {
    copy.discard()
  }
}

describe.skipIf(withoutRedis('broken copies of the bank') || withoutCrashes('broken copies of the bank'))(
  'the auditor of the bank',
  { timeout: 120_000 },
  () => {
    test('the auditor of the tests finds no lost or double charge while nodes rarely report their charges', async () => {
      expect(await brokenBy([RARE_REPORTS], { accounts: POOR_ACCOUNTS })).toBe('')
    })
    test('the auditor of the tests detects a program that returns quota leases before it reports charges', async () => {
      // Long enough to use up the keys on a busy machine.
      const plan = { accounts: POOR_ACCOUNTS, seconds: 24 }
      const broken = await brokenBy([RARE_REPORTS, ...RELEASE_FIRST], plan)
      expect(broken).toMatch(/is overdrawn by|was lent than there was/)
    })
    test('the auditor of the tests finds no lost or double charge while responses to charge reports are lost', async () => {
      expect(await brokenBy(LOST_ANSWERS)).toBe('')
    })
    test('the auditor of the tests detects a program that counts a repeated charge report again', async () => {
      expect(await brokenBy([...LOST_ANSWERS, ...NOT_IDEMPOTENT])).toMatch(
        /used \d+, (?:its|the) rows say \d+/,
      )
    })
    test('the auditor of the tests finds no overspent budget while budgets are tight and nodes are killed', async () => {
      expect(await brokenBy([], { accounts: TIGHT_BUDGETS, faults: [killNodes] })).toBe('')
    })
    test('the auditor of the tests detects a program that lends nodes more than a budget has', async () => {
      expect(await brokenBy(UNBOUNDED_BUDGETS, { accounts: TIGHT_BUDGETS })).toMatch(
        /the budget b:day:\S+ of 3000 is overspent/,
      )
    })
    test('the auditor of the tests detects a program that charges calls to no budget', async () => {
      expect(await brokenBy([UNCHARGED_BUDGETS], { accounts: TIGHT_BUDGETS })).toMatch(
        /the budget \S+ has 0 used, its calls were charged \d+/,
      )
    })
    test('the auditor of the tests detects a program that starts without recovering calls of its last run', async () => {
      expect(await brokenBy([NO_RECOVERY], { faults: [killNodes] })).toMatch(/is still open|without a trace/)
    })
  },
)
