import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { collectWhenIdle } from './idle-memory.ts'

let openExchanges = 0
let given = 0
let residentBytes = 0
let trimmedBytes = 0
let giving: { stop(): void }
beforeEach(() => {
  vi.useFakeTimers()
  openExchanges = 0
  given = 0
  residentBytes = 150e6
  trimmedBytes = 150e6
  giving = collectWhenIdle(() => openExchanges, {
    collect: () => (given += 1),
    trim: async () => void (residentBytes = Math.min(residentBytes, trimmedBytes)),
    residentBytes: () => residentBytes,
  })
})
afterEach(() => {
  giving.stop()
  vi.useRealTimers()
})

/** So many seconds with so many requests under way at each. */
function pass(seconds: number, underWay = 0): void {
  openExchanges = underWay
  vi.advanceTimersByTime(seconds * 1_000)
}

describe('memory is given back', () => {
  test('three seconds after the start, once', () => {
    pass(2)
    expect(given).toBe(0)
    pass(1)
    expect(given).toBe(1)
    pass(3_600)
    expect(given).toBe(1)
  })

  test('three seconds after what was done at the start', () => {
    pass(20, 1)
    pass(3)
    expect(given).toBe(1)
  })

  test('a minute after work that was there from the start on, not in a pause', () => {
    pass(100, 1)
    pass(59)
    expect(given).toBe(0)
    pass(1)
    expect(given).toBe(1)
  })

  test('every ten minutes at most', () => {
    pass(3)
    pass(10, 1)
    pass(60)
    expect(given).toBe(2)
    pass(10, 1)
    pass(500)
    expect(given).toBe(2)
    pass(100)
    expect(given).toBe(3)
  })

  test('a minute after work, however recently before, if the resident size has grown by a quarter', () => {
    pass(3)
    pass(10, 1)
    pass(60)
    expect(given).toBe(2)
    pass(10, 1)
    residentBytes *= 1.24
    pass(100)
    expect(given).toBe(2)
    residentBytes *= 1.02
    pass(1)
    expect(given).toBe(3)
    // Memory that was no garbage is not collected again before there was more work.
    pass(1_000)
    expect(given).toBe(3)
  })

  test('a growth counts from what was left after the heap of the C library was trimmed', async () => {
    pass(3)
    trimmedBytes = 100e6
    pass(10, 1)
    await vi.advanceTimersByTimeAsync(0)
    pass(60)
    await vi.advanceTimersByTimeAsync(0)
    expect(given).toBe(2)
    pass(10, 1)
    residentBytes = 130e6
    pass(60)
    expect(given).toBe(3)
  })
})
