import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { NODE_LOOP } from './event-loop.ts'

/** What each clock says that passed meanwhile. */
async function passedIn(what: () => unknown): Promise<{ nowMs: number; workedMs: number; idleMs: number }> {
  // A turn of its own: idle time is told up to the last wait.
  await sleep(1)
  const [nowMs, workedMs, idleMs] = [NODE_LOOP.nowMs(), NODE_LOOP.workedMs(), NODE_LOOP.idleMs()]
  await what()
  return {
    nowMs: NODE_LOOP.nowMs() - nowMs,
    workedMs: NODE_LOOP.workedMs() - workedMs,
    idleMs: NODE_LOOP.idleMs() - idleMs,
  }
}

test('a loop that waits is idle, and not at work', async () => {
  const passed = await passedIn(() => sleep(200))
  expect(passed.idleMs).toBeGreaterThan(passed.nowMs / 2)
  expect(passed.workedMs).toBeLessThan(passed.nowMs / 2)
})

test('a loop that works is not idle', async () => {
  const passed = await passedIn(() => {
    const began = NODE_LOOP.workedMs()
    while (NODE_LOOP.workedMs() - began < 100);
  })
  expect(passed.workedMs).toBeGreaterThanOrEqual(100)
  expect(passed.idleMs).toBeLessThan(10)
})

test('a step is over when no promise that it settled has anything left to do', async () => {
  const said: string[] = []
  await turn()
  NODE_LOOP.afterStep(() => said.push('after'))
  void (async () => {
    for (let i = 0; i < 3; i++) {
      await undefined
      said.push(`step ${i}`)
    }
  })()
  await turn()
  expect(said).toEqual(['step 0', 'step 1', 'step 2', 'after'])
})
