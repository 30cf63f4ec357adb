import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LOOP_CLOCKS } from './loop-clocks.ts'

/** Runs `what`, and reads how much time passed by each clock. */
async function passedIn(what: () => unknown): Promise<{ nowMs: number; workedMs: number; idleMs: number }> {
  // A turn apart: idle time is known up to the last wait.
  await sleep(1)
  const [nowMs, workedMs, idleMs] = [LOOP_CLOCKS.nowMs(), LOOP_CLOCKS.workedMs(), LOOP_CLOCKS.idleMs()]
  await what()
  return {
    nowMs: LOOP_CLOCKS.nowMs() - nowMs,
    workedMs: LOOP_CLOCKS.workedMs() - workedMs,
    idleMs: LOOP_CLOCKS.idleMs() - idleMs,
  }
}

test('a loop that waits is idle, and not at work', async () => {
  const passed = await passedIn(() => sleep(200))
  expect(passed.idleMs).toBeGreaterThan(passed.nowMs / 2)
  expect(passed.workedMs).toBeLessThan(passed.nowMs / 2)
})

test('a loop that works is not idle', async () => {
  const passed = await passedIn(() => {
    const began = LOOP_CLOCKS.workedMs()
    while (LOOP_CLOCKS.workedMs() - began < 100);
  })
  expect(passed.workedMs).toBeGreaterThanOrEqual(100)
  expect(passed.idleMs).toBeLessThan(10)
})
