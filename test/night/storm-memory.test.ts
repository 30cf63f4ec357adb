import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { residentBytes } from '../equipment/resident-memory.ts'
import { setLoadStage } from '../load/load-stage.ts'

/** Idle time after which the memory that the start took has been given back. */
const SETTLED_MS = 8_000

test('five minutes after a storm a gateway has at most half as much memory again as when it began', {
  timeout: 420_000,
}, async () => {
  // Five thousand calls; answers that take a second come together, of hundreds of them.
  const stage = await setLoadStage({ upstream: 'stream', afterMs: 1_000, flags: '--max-old-space-size=512' })
  onTestFinished(() => stage.close())
  const megabytes = (): number => Math.round(residentBytes(stage.gateway.pid) / 1e6)
  await sleep(SETTLED_MS)
  const atStart = megabytes()
  let most = 0
  const look = setInterval(() => (most = Math.max(most, megabytes())), 200)
  const { counts } = await stage.arrive({ perSecond: 1_000 }, 5)
  clearInterval(look)
  expect(counts['200']).toBeGreaterThan(100)
  await expect
    .poll(megabytes, { timeout: 300_000, interval: 1_000 })
    .toBeLessThanOrEqual(Math.round(1.5 * atStart))
  console.info(`${atStart} MB at the start, ${most} MB at most, ${megabytes()} MB at the end`)
})
