import { expect, test } from 'vitest'
import { nextAttemptMs } from './alert-sender.ts'

const DAY_MS = 86_400_000

test('an alert is retried after 5 seconds, then at growing intervals, for a day', () => {
  const delays: number[] = []
  let nowMs = 1_000
  for (;;) {
    const next = nextAttemptMs(delays.length + 1, 1_000, nowMs)
    if (next === undefined) break
    delays.push(next - nowMs)
    nowMs = next
  }
  expect(delays.slice(0, 4)).toEqual([5_000, 10_000, 20_000, 40_000])
  expect(Math.max(...delays)).toBe(3_600_000)
  expect(delays.reduce((sum, delay) => sum + delay, 0)).toBe(DAY_MS)
})

test('an alert is retried at most once if the gateway was off for longer than a day', () => {
  expect(nextAttemptMs(1, 0, DAY_MS - 1)).toBe(DAY_MS)
  expect(nextAttemptMs(1, 0, DAY_MS)).toBeUndefined()
})
