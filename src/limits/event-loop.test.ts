import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { NODE_LOOP } from './event-loop.ts'

/** Milliseconds for which the event loop is idle while `action` runs. */
async function idleDuring(action: () => unknown): Promise<number> {
  // Starts a new turn, because idle time is counted up to the last wait.
  await sleep(1)
  const idleMs = NODE_LOOP.idleMs()
  await action()
  return NODE_LOOP.idleMs() - idleMs
}

test('a loop that waits is idle', async () => {
  // A process that gets no CPU time does not become idle, so the measurement is repeated.
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
