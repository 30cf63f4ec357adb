import process from 'node:process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { randomFrom } from '../fixtures/random.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { crowds, crowdFixture, SIZES } from '../faults/crowd.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/** NIGHT_REPETITIONS sets another number. */
const REPETITIONS = Number(process.env['NIGHT_REPETITIONS'] ?? 200)
const REFUSED_WITHIN_MS = 50

let fixture: Fixture
beforeAll(async () => {
  fixture = await crowdFixture()
})
afterAll(() => fixture?.close())

test.each(SIZES)(
  `of $calls simultaneous calls with a quota for $affordable, exactly $affordable are admitted in each of ${REPETITIONS} runs`,
  { timeout: 3_600_000 },
  async (size) => {
    const report = await crowds(fixture, size, REPETITIONS, randomFrom(seed))
    console.log(report)
    expect(report.refusalMs).toBeLessThan(REFUSED_WITHIN_MS)
  },
)
