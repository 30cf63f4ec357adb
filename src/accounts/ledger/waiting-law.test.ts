import process from 'node:process'
import { expect, test } from 'vitest'
import { LEDGER_PLACES } from '../../../test/ledger/banks.ts'
import { runWaiting } from '../../../test/ledger/waiting-law.ts'
import { throwViolation } from '../../../test/ledger/throw-violation.ts'
import { byTier } from '../../../test/runner/tier.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

test.each(LEDGER_PLACES)(
  '$name: in random sequences with waiting calls nothing is overdrawn but by responses above their holds, and each wait ends',
  async ({ name, open, isLeased }) => {
    const rounds = isLeased ? byTier(12, 300) : byTier(20, 2000)
    const report = await runWaiting(open, SEED, { rounds, calls: 40 })
    console.info(`SEED=${SEED} repeats it:`, report)
    throwViolation(report, { place: name, seed: SEED })
    expect(report.rounds).toBe(rounds)
    // Checks that the calls met each other.
    expect(report.admitted).toBeGreaterThan(10 * rounds)
    expect(report.waited).toBeGreaterThan(rounds)
    expect(report.held).toBeGreaterThan(rounds)
    expect(report.spent).toBeGreaterThan(rounds)
    // A prompt is continued in every round without a crash.
    expect(report.continued).toBeGreaterThanOrEqual(rounds / 2)
    expect(report.raised).toBeGreaterThan(0)
    expect(report.exceeded).toBeGreaterThan(0)
    expect(report.crashes).toBeGreaterThan(0)
  },
)
