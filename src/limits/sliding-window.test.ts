import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SlidingWindow } from './sliding-window.ts'

describe('a sliding window', () => {
  test('a sliding window admits calls up to the limit, and then none until the oldest one has expired', () => {
    const window = new SlidingWindow()
    for (const at of [0, 10, 20]) expect(window.take(at, 1, 3, 100).allowed).toBe(true)
    expect(window.take(99, 1, 3, 100)).toMatchObject({ allowed: false, remaining: 0, waitMs: 1, resetMs: 21 })
    expect(window.take(100, 1, 3, 100)).toMatchObject({ allowed: true, remaining: 0 })
    expect(window.take(101, 1, 3, 100)).toMatchObject({ allowed: false, waitMs: 9 })
  })

  test('a sliding window does not count calls that it refused', () => {
    const window = new SlidingWindow()
    window.take(0, 1, 1, 100)
    for (let at = 1; at < 100; at++) window.take(at, 1, 1, 100)
    expect(window.take(100, 1, 1, 100).allowed).toBe(true)
  })

  test('a sliding window states how long to wait until several units at once are admitted', () => {
    const window = new SlidingWindow()
    window.take(0, 40, 100, 1000)
    window.take(500, 60, 100, 1000)
    expect(window.peek(600, 50, 100, 1000)).toMatchObject({ allowed: false, waitMs: 900 })
    expect(window.peek(600, 40, 100, 1000)).toMatchObject({ allowed: false, waitMs: 400 })
  })

  test('a sliding window never exceeds the limit in any period of its length', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 400 })
    fc.assert(
      fc.property(
        gaps,
        fc.integer({ min: 1, max: 150 }),
        fc.integer({ min: 1, max: 1000 }),
        (steps, max, windowMs) => {
          const window = new SlidingWindow()
          const through: number[] = []
          let nowMs = 0
          for (const step of steps) {
            nowMs += step
            if (window.take(nowMs, 1, max, windowMs).allowed) through.push(nowMs)
          }
          for (const end of through) {
            expect(through.filter((at) => at > end - windowMs && at <= end).length).toBeLessThanOrEqual(max)
          }
        },
      ),
    )
  })

  test('a sliding window counts 64 moments exactly, and more moments for at most a 64th of its length too long', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 300 }), (steps) => {
        const window = new SlidingWindow()
        const came: number[] = []
        let nowMs = 0
        for (const step of steps) {
          nowMs += step
          window.add(nowMs, 1, 1000)
          came.push(nowMs)
          const counted = 10_000 - window.peek(nowMs, 0, 10_000, 1000).remaining
          const within = (length: number): number => came.filter((at) => at > nowMs - length).length
          expect(counted).toBeGreaterThanOrEqual(within(1000))
          expect(counted).toBeLessThanOrEqual(came.length <= 64 ? within(1000) : within(1000 + 1000 / 64))
        }
      }),
    )
  })
})
