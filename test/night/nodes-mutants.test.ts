import { describe, expect, test } from 'vitest'
import { withoutCrashes } from '../fixtures/own-postgres.ts'
import type { Patch } from '../fixtures/patch.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { POOR_ACCOUNTS, TIGHT_BUDGETS } from '../nodes/accounts.ts'
import { killNodes } from '../nodes/fault-injection.ts'
import { nodesStorm, type NodesStormPlan } from '../nodes/nodes-storm.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()

/** Reports are rare, so that different orders occur in every storm. */
const RARE_REPORTS: Patch = {
  file: 'src/accounts/ledger/bank-client.ts',
  text: 'const REPORT_MS = 200',
  by: 'const REPORT_MS = 1500',
}
/** Returns a recalled lease at once, before the report, including spent quota that is not reported yet. */
const RELEASE_FIRST: readonly Patch[] = [
  {
    file: 'src/accounts/ledger/bank-client.ts',
    text: '    const isUrgent = this.#outbox.isFull || this.#flushes.size > 0',
    by: '    if (this.#isReportRequested) await this.#releaseSpare(nowMs)\n    const isUrgent = this.#outbox.isFull || this.#flushes.size > 0',
  },
  {
    file: 'src/accounts/ledger/leased-balance.ts',
    text: 'return Math.max(0, this.held + this.#unreported)',
    by: 'return Math.max(0, this.held)',
  },
  // The report follows so late that other nodes can spend what was returned.
  {
    file: 'src/accounts/ledger/bank-client.ts',
    text: 'const REQUESTED_MS = 20',
    by: 'const REQUESTED_MS = 1000',
  },
]
/** Loses the response to every third report, so that the report is repeated. */
const LOST_ANSWERS: readonly Patch[] = [
  {
    file: 'src/accounts/ledger/bank-client.ts',
    text: '      const known = new Set<string>(states',
    by: "      if (entries.length > 0 && Math.random() < 1 / 3) throw new StoreUnavailable('lost')\n      const known = new Set<string>(states",
  },
]
/** Counts a repeated report again: neither the last report nor the rows of the log show what is charged. */
const NOT_IDEMPOTENT: readonly Patch[] = [
  {
    file: 'src/store/postgres/bank/charge.sql',
    text: 'select given.* from given join logged using (id)',
    by: 'select given.* from given',
  },
  {
    file: 'src/store/postgres/bank/apply.sql',
    text: 'if cardinality(again) > 0 then',
    by: 'if false then',
  },
]
/** Ignores holds that an earlier run left open. */
const NO_RECOVERY: Patch = {
  file: 'src/gateway/open-shared-ledger.ts',
  text: 'const recovered = await ledger.recover()',
  by: 'const recovered = { count: 0, quota: 0 }',
}

/** Lends budgets without checking what is used of them or lent to others. */
const UNBOUNDED_BUDGETS: readonly Patch[] = [
  {
    file: 'src/store/postgres/bank/borrow.sql',
    text: 'where bank_free(w.account) < w.need);',
    by: "where not w.account like 'b:%' and bank_free(w.account) < w.need);",
  },
  {
    file: 'src/store/postgres/bank/borrow.sql',
    text: 'bank_share(b.amount - b.used - b.leased, w.need,\n            bank_useful(b.account, w.need, w.most)) as gets',
    by: 'w.most as gets',
  },
  // Nodes do not spend what they see to be lent beyond the budget.
  {
    file: 'src/accounts/ledger/leased-balance.ts',
    text: 'this.remain - this.held + Math.min(0, this.#bankFree)',
    by: 'this.remain - this.held',
  },
]
/** Charges calls to balances only. */
const UNCHARGED_BUDGETS: Patch = {
  file: 'src/store/postgres/bank/charge.sql',
  text: 'update budget_periods b set used = b.used + spent.quota, leased',
  by: 'update budget_periods b set leased',
}

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
