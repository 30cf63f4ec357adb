import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { NODE_LOOP } from './event-loop.ts'

/** Idle time that passes meanwhile. */
async function idleIn(what: () => unknown): Promise<number> {
  // A turn of its own: idle time is told up to the last wait.
  await sleep(1)
  const idleMs = NODE_LOOP.idleMs()
  await what()
  return NODE_LOOP.idleMs() - idleMs
}

test('a loop that waits is idle', async () => {
  const beganMs = NODE_LOOP.nowMs()
  const idleMs = await idleIn(() => sleep(200))
  expect(idleMs).toBeGreaterThan(100)
  expect(idleMs).toBeLessThanOrEqual(NODE_LOOP.nowMs() - beganMs)
})

test('a loop that works is not idle', async () => {
  const idleMs = await idleIn(() => {
    const beganMs = NODE_LOOP.nowMs()
    while (NODE_LOOP.nowMs() - beganMs < 100);
  })
  expect(idleMs).toBeLessThan(10)
})
