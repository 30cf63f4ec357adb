import process from 'node:process'
import { expect, test } from 'vitest'
import { LEDGER_PLACES } from '../../../test/ledger/banks.ts'
import { runSequences } from '../../../test/ledger/sequences.ts'
import { throwViolation } from '../../../test/ledger/throw-violation.ts'
import { byTier } from '../../../test/runner/tier.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

test.each(LEDGER_PLACES)(
  'random calls, grants, budgets, deletions and crashes on $name give the same balances as a simple model of the ledger',
  async ({ name, open, isLeased }) => {
    const count = isLeased ? byTier(20, 300) : byTier(200, 2000)
    const report = await runSequences(open, SEED, { count, atOnce: isLeased ? 20 : 250 })
    console.info(`SEED=${SEED} repeats it:`, report)
    throwViolation(report, { place: name, seed: SEED })
    expect(report.sequences).toBeGreaterThanOrEqual(count)
    // Checks that the sequences exercised the ledger.
    expect(report.holds).toBeGreaterThan(count)
    expect(report.refusals).toBeGreaterThan(count)
    expect(report.ofBudgets).toBeGreaterThan(count)
    expect(report.crashes).toBeGreaterThanOrEqual(2)
    expect(report.written).toBeGreaterThan(count / 5)
    // The few sequences on leases by day may park no hold.
    if (byTier(!isLeased, true)) expect(report.parked).toBeGreaterThan(count / 20)
  },
)
