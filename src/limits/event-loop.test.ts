import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { NODE_LOOP } from './event-loop.ts'

/** Idle milliseconds while `action` runs. */
async function idleDuring(action: () => unknown): Promise<number> {
  // Starts a new turn: idle time is counted up to the last wait.
  await sleep(1)
  const idleMs = NODE_LOOP.idleMs()
  await action()
  return NODE_LOOP.idleMs() - idleMs
}

test('a loop that waits is idle', async () => {
  // A process that gets no processor for the whole time does not wait: then it is tried again.
  await expect
    .poll(
      async () => {
        const startMs = NODE_LOOP.nowMs()
        const idleMs = await idleDuring(() => sleep(200))
        expect(idleMs).toBeLessThanOrEqual(NODE_LOOP.nowMs() - startMs)
        return idleMs
      },
      { timeout: 60_000 },
    )
    .toBeGreaterThan(100)
})

test('a loop that works is not idle', async () => {
  const idleMs = await idleDuring(() => {
    const startMs = NODE_LOOP.nowMs()
    while (NODE_LOOP.nowMs() - startMs < 100);
  })
  expect(idleMs).toBeLessThan(10)
})
