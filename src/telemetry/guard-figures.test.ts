import { expect, test } from 'vitest'
import { addGuardSums, delayP95, GuardFigures, NO_GUARDED_CALLS } from './guard-figures.ts'

const HOUR_MS = 3_600_000

test('the statistics of a guard cover only the calls of the last 24 hours', () => {
  let nowMs = 1_000 * HOUR_MS
  const figures = new GuardFigures(() => nowMs)
  figures.note('a', { verdict: 'blocked', matches: 2, delayMs: 1 })
  nowMs += 23 * HOUR_MS
  figures.note('a', { verdict: 'failed_passed', matches: 0, delayMs: 1 })
  figures.note('b', { verdict: 'redacted', matches: 5, delayMs: 1 })
  expect(figures.of('a')).toMatchObject({ calls: 2, matches: 2, blocked: 1, failed: 1 })
  nowMs += HOUR_MS
  expect(figures.of('a')).toMatchObject({ calls: 1, matches: 0, blocked: 0, failed: 1 })
  nowMs += 24 * HOUR_MS
  expect(figures.of('a')).toMatchObject({ calls: 0 })
})

test("the 95th percentile of a guard's delay has an error of at most a tenth", () => {
  const figures = new GuardFigures(() => 0)
  for (let call = 1; call <= 100; call += 1)
    figures.note('a', { verdict: 'allowed', matches: 0, delayMs: call })
  const p95 = delayP95(figures.of('a')) ?? 0
  expect(p95).toBeGreaterThan(95 * 0.9)
  expect(p95).toBeLessThan(95 * 1.1)
  expect(delayP95(NO_GUARDED_CALLS)).toBeNull()
})

test('the guard statistics of two nodes add up to those of all their calls', () => {
  const [one, other, both] = [0, 1, 2].map(() => new GuardFigures(() => 0))
  for (const [index, delayMs] of [0.2, 3, 40, 0.001].entries()) {
    const call = { verdict: 'redacted', matches: index, delayMs } as const
    both?.note('a', call)
    ;(index % 2 === 0 ? one : other)?.note('a', call)
  }
  const sums = addGuardSums(one!.of('a'), other!.of('a'))
  expect([sums.calls, sums.matches, delayP95(sums)]).toEqual([4, 6, delayP95(both!.of('a'))])
})
