import process from 'node:process'
import { afterAll, beforeAll, test } from 'vitest'
import { randomFrom } from '../fixtures/random.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { type CrowdSize, crowds, crowdFixture, SIZES } from './crowd.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
/** As many repetitions as fit into a test run; the nightly run has hundreds of each, and of 2,000 calls. */
const REPETITIONS = [2, 1]

let fixture: Fixture
beforeAll(async () => {
  fixture = await crowdFixture()
})
afterAll(() => fixture?.close())

test.each(REPETITIONS.map((repetitions, index) => ({ ...(SIZES[index] as CrowdSize), repetitions })))(
  'of $calls calls at once on a quota for $affordable exactly that number is admitted, and all others are refused at once',
  { timeout: 300_000 },
  async ({ repetitions, ...size }) => {
    const report = await crowds(fixture, size, repetitions, randomFrom(SEED))
    // Admitted calls were answered after all others had been refused.
    console.info(`SEED=${SEED}`, report)
  },
)
