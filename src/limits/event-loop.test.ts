import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { THREAD_EVENT_LOOP, DeferredRefusals } from './event-loop.ts'

/** Milliseconds for which the event loop is idle while `action` runs. */
async function idleDuring(action: () => unknown): Promise<number> {
  // Starts a new turn, because idle time is counted up to the last wait.
  await sleep(1)
  const idleMs = THREAD_EVENT_LOOP.idleMs()
  await action()
  return THREAD_EVENT_LOOP.idleMs() - idleMs
}

test('the time that the event loop waits is measured as idle time', async () => {
  // A process that gets no CPU time does not become idle, so the measurement is repeated.
  await expect
    .poll(async () => {
      const startMs = THREAD_EVENT_LOOP.nowMs()
      const idleMs = await idleDuring(() => sleep(200))
      expect(idleMs).toBeLessThanOrEqual(THREAD_EVENT_LOOP.nowMs() - startMs)
      return idleMs
    })
    .toBeGreaterThan(100)
})

test('the time that the event loop works is not measured as idle time', async () => {
  const idleMs = await idleDuring(() => {
    const startMs = THREAD_EVENT_LOOP.nowMs()
    while (THREAD_EVENT_LOOP.nowMs() - startMs < 100);
  })
  expect(idleMs).toBeLessThan(10)
})

test('up to 500 refusals in a turn of the event loop are sent at once, and further ones at the end of the turn', async () => {
  const refusals = new DeferredRefusals()
  for (let round = 0; round < 2; round++) {
    let said = 0
    for (let i = 1; i <= 700; i++) {
      refusals.send(() => (said += 1))
      expect(said).toBe(Math.min(i, 500))
    }
    await turn()
    expect(said).toBe(700)
  }
})

test('refusals that are added while deferred refusals are being sent are sent in the following turns of the event loop', async () => {
  const refusals = new DeferredRefusals()
  let again = 0
  for (let i = 0; i < 501; i++) refusals.send(() => refusals.send(() => (again += 1)))
  await turn()
  await turn()
  expect(again).toBe(501)
})
