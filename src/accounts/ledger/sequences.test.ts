import process from 'node:process'
import { expect, test } from 'vitest'
import { runSequences } from '../../../test/ledger-sequences.ts'
import { byTier } from '../../../test/tier.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const SEQUENCES = byTier(500, 2000)

test(`${SEQUENCES} sequences of calls, grants, deletions and crashes leave the expected balances`, {
  timeout: 300_000,
}, async () => {
  const report = await runSequences(SEED, SEQUENCES)
  console.info(`SEED=${SEED} repeats it:`, report)
  expect(report.violation).toBeUndefined()
  expect(report.sequences).toBeGreaterThanOrEqual(SEQUENCES)
  // Checks that the sequences exercised the ledger.
  expect(report.holds).toBeGreaterThan(SEQUENCES)
  expect(report.refusals).toBeGreaterThan(SEQUENCES)
  expect(report.crashes).toBeGreaterThanOrEqual(4)
  expect(report.written).toBeGreaterThan(100)
})
