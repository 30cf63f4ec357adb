import { describe, expect, test } from 'vitest'
import { LEDGER_PLACES } from '../ledger/banks.ts'
import { runSequences } from '../ledger/sequences.ts'
import { throwViolation } from '../ledger/throw-violation.ts'
import { runWaiting } from '../ledger/waiting-law.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()

describe.each(LEDGER_PLACES)('$name', ({ name, open, isLeased }) => {
  const [runs, count] = isLeased ? [5, 300] : [20, 5000]

  test.each(Array.from({ length: runs }, (_, run) => ({ run: run + 1, seed: seed + run })))(
    `${count} random sequences of calls, grants and crashes give the balances of a simple model: run $run of ${runs}, seed $seed`,
    { timeout: 600_000 },
    async ({ seed: seedOfRun }) => {
      const report = await runSequences(open, seedOfRun, { count, atOnce: isLeased ? 20 : 250 })
      console.log(report)
      throwViolation(report, { place: name, seed: seedOfRun })
      expect(report.sequences).toBeGreaterThanOrEqual(count)
    },
  )

  const rounds = isLeased ? 300 : 2000
  test(`in ${rounds} rounds of calls that wait for quota, exceed their holds or are lost, no account is overdrawn and each wait ends`, {
    timeout: 1_800_000,
  }, async () => {
    const report = await runWaiting(open, seed, { rounds, calls: 40 })
    console.log(report)
    throwViolation(report, { place: name, seed })
  })
})
