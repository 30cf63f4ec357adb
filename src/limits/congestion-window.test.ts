import { expect, test } from 'vitest'
import { CongestionWindow, WaitForecast } from './congestion-window.ts'

/** Lets calls begin until the window is full; returns their number. */
function fill(window: CongestionWindow): number {
  let begun = 0
  for (; window.isOpen; begun++) window.callBegan(false)
  return begun
}

/** Lets calls end, and as many begin as the window allows; returns the number of calls that began. */
function replace(window: CongestionWindow, calls: number): number {
  let begun = 0
  for (let i = 0; i < calls; i++) {
    window.callEnded(false)
    begun += fill(window)
  }
  return begun
}

test('the congestion window of a busy event loop shrinks: for each 16 calls that end, it lets 15 begin', () => {
  const window = new CongestionWindow()
  fill(window)
  window.addTime(16, 16, 1)
  fill(window)
  expect(replace(window, 160)).toBe(150)
})

/** Lets calls end, each of which keeps the loop busy for `costMs` milliseconds. */
function serve(window: CongestionWindow, calls: number, costMs: number): void {
  for (let i = 0; i < calls; i++) {
    window.callBegan(true)
    window.addTime(costMs, 0, 0)
    window.callEnded(true)
  }
}

test('the congestion window grows by the calls that the idle time of the event loop could have processed', () => {
  const window = new CongestionWindow()
  fill(window)
  serve(window, 1_000, 2)
  window.addTime(10, 8, 0)
  expect(fill(window)).toBe(4)
})

test('idle time of the event loop during calls does not count as CPU cost of these calls', () => {
  const window = new CongestionWindow()
  fill(window)
  for (let i = 0; i < 1_000; i++) {
    window.callBegan(true)
    window.addTime(10, 9, 0)
    window.callEnded(true)
  }
  fill(window)
  window.addTime(9, 9, 0)
  expect(fill(window)).toBe(9)
})

test('before any call has ended, the CPU cost of a call is estimated by the cost of beginning one', () => {
  const window = new CongestionWindow()
  fill(window)
  for (let i = 0; i < 1_000; i++) {
    window.callBegan(true)
    window.addTime(1, 0, 0)
  }
  window.reopen()
  fill(window)
  window.addTime(10, 10, 0)
  expect(fill(window)).toBe(10)
})

test('the congestion window grows at the minimum rate while the cost of calls is unknown or high', () => {
  const window = new CongestionWindow()
  fill(window)
  window.addTime(20, 20, 1 / 5)
  expect(fill(window)).toBe(4)
  serve(window, 10, 1_000)
  window.reopen()
  fill(window)
  window.addTime(20, 20, 1 / 5)
  expect(fill(window)).toBe(4)
})

test('the congestion window admits at least 16 calls in flight, however busy the event loop is', () => {
  const window = new CongestionWindow()
  fill(window)
  window.addTime(16, 16, 1)
  fill(window)
  replace(window, 10_000)
  expect(replace(window, 100)).toBe(100)
  for (let i = 0; i < 16; i++) window.callEnded(false)
  expect(fill(window)).toBe(16)
})

test('the congestion window admits at most 16 more calls after an idle time of the event loop, however long it was', () => {
  const window = new CongestionWindow()
  fill(window)
  window.addTime(10_000, 10_000, 1)
  expect(fill(window)).toBe(16)
})

test('calls that began while the congestion window was closed count as in flight, so that the window opens later', () => {
  const window = new CongestionWindow()
  fill(window)
  for (let i = 0; i < 10; i++) window.callBegan(false)
  window.addTime(10, 10, 1)
  expect(window.isOpen).toBe(false)
  window.addTime(1, 1, 1)
  expect(fill(window)).toBe(1)
})

test('a reopened congestion window admits 16 more calls, however many are in flight', () => {
  const window = new CongestionWindow()
  fill(window)
  window.reopen()
  expect(fill(window)).toBe(16)
})

test('the congestion window admits as many calls in flight as the event loop can process in twelve milliseconds', () => {
  const window = new CongestionWindow()
  fill(window)
  serve(window, 10_000, 0.1)
  const more = fill(window)
  expect(more).toBeGreaterThan(115 - 16)
  expect(more).toBeLessThanOrEqual(120 - 16)
  serve(window, 1_000, 2)
  expect(window.isOpen).toBe(false)
  expect(replace(window, more + 16)).toBe(16)
})

/** Lets a call begin at every interval, for this duration. */
function beginCalls(forecast: WaitForecast, intervalMs: number, durationMs: number): void {
  for (let ms = 0; ms < durationMs; ms += intervalMs) {
    forecast.addTime(intervalMs)
    forecast.callBegan()
  }
}

test('the forecast waiting time is the time until all queued calls have begun at the recent rate', () => {
  const forecast = new WaitForecast()
  beginCalls(forecast, 4, 5_000)
  expect(forecast.waitMs(500)).toBeCloseTo(2_000, -2)
  expect(forecast.waitMs(0)).toBe(0)
})

test('the forecast waiting time of queued calls is 0 before any rate was measured', () => {
  expect(new WaitForecast().waitMs(5_000)).toBe(0)
})

test('the forecast waiting time of queued calls follows a change of the rate within a second or two', () => {
  const forecast = new WaitForecast()
  beginCalls(forecast, 1, 60_000)
  beginCalls(forecast, 4, 3_000)
  expect(forecast.waitMs(1_000)).toBeGreaterThan(3_000)
})

test('the forecast waiting time of queued calls grows while no call begins', () => {
  const forecast = new WaitForecast()
  beginCalls(forecast, 1, 5_000)
  forecast.addTime(2_000)
  expect(forecast.waitMs(1_000)).toBeGreaterThan(10_000)
})
