import { expect, test } from 'vitest'
import { runSequences } from '../ledger-sequences.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
const RUNS = 20
const SEQUENCES = 5000

test.each(Array.from({ length: RUNS }, (_, run) => ({ run: run + 1, seed: seed + run })))(
  `${SEQUENCES} sequences of calls, grants, deletions and crashes leave the balances of the model: run $run of ${RUNS}, seed $seed`,
  { timeout: 600_000 },
  async ({ seed: seedOfRun }) => {
    const report = await runSequences(seedOfRun, SEQUENCES)
    console.log(report)
    expect(report.violation).toBeUndefined()
    expect(report.sequences).toBeGreaterThanOrEqual(SEQUENCES)
  },
)
