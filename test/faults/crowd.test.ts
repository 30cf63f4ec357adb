import process from 'node:process'
import { afterAll, beforeAll, test } from 'vitest'
import { randomFrom } from '../fixtures/random.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { crowds, crowdFixture, SIZES } from './crowd.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
/** As many repetitions as fit into a test run; the nightly run has hundreds of each. */
const REPETITIONS = [6, 2, 1]

let fixture: Fixture
beforeAll(async () => {
  fixture = await crowdFixture()
})
afterAll(() => fixture?.close())

test.each(SIZES.map((size, index) => ({ ...size, repetitions: REPETITIONS[index] ?? 1 })))(
  'of $calls calls at once on a quota for $affordable exactly that number is admitted, and all others are refused at once',
  { timeout: 300_000 },
  async ({ repetitions, ...size }) => {
    const report = await crowds(fixture, size, repetitions, randomFrom(SEED))
    // Admitted calls were answered after all others had been refused.
    console.info(`SEED=${SEED}`, report)
  },
)
