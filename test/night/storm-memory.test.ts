import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { startLoadFixture } from '../load/load-fixture.ts'

/** Idle milliseconds after which the memory of the start is released. */
const SETTLED_MS = 8_000

test('within five minutes after an overload the gateway releases memory to at most 1.5 times what it used after its start', {
  timeout: 420_000,
}, async () => {
  // Responses of hundreds of calls arrive together, because the upstream takes a second.
  const fixture = await startLoadFixture({
    upstream: 'stream',
    afterMs: 1_000,
    flags: '--max-old-space-size=512',
  })
  onTestFinished(() => fixture.close())
  const megabytes = (): number => Math.round(residentBytes(fixture.gateway.pid) / 1e6)
  await sleep(SETTLED_MS)
  const atStart = megabytes()
  let max = 0
  const sampler = setInterval(() => (max = Math.max(max, megabytes())), 200)
  const { counts } = await fixture.arrive({ perSecond: 1_000 }, 5)
  clearInterval(sampler)
  expect(counts['200']).toBeGreaterThan(100)
  await expect
    .poll(megabytes, { timeout: 300_000, interval: 1_000 })
    .toBeLessThanOrEqual(Math.round(1.5 * atStart))
  console.info(`${atStart} MB at the start, ${max} MB at most, ${megabytes()} MB at the end`)
})
