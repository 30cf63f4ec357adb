import { expect, test } from 'vitest'
import { WaitForecast } from './wait-forecast.ts'

/** Lets a call begin at every interval, for this duration. */
function beginCalls(forecast: WaitForecast, intervalMs: number, durationMs: number): void {
  for (let ms = 0; ms < durationMs; ms += intervalMs) {
    forecast.addTime(intervalMs)
    forecast.callBegan()
  }
}

test('the forecast is the time until the whole queue has begun at the recent rate', () => {
  const forecast = new WaitForecast()
  beginCalls(forecast, 4, 5_000)
  expect(forecast.waitMs(500)).toBeCloseTo(2_000, -2)
  expect(forecast.waitMs(0)).toBe(0)
})

test('the forecast is 0 before anything was measured', () => {
  expect(new WaitForecast().waitMs(5_000)).toBe(0)
})

test('the forecast follows a change of the rate within a second or two', () => {
  const forecast = new WaitForecast()
  beginCalls(forecast, 1, 60_000)
  beginCalls(forecast, 4, 3_000)
  expect(forecast.waitMs(1_000)).toBeGreaterThan(3_000)
})

test('the forecast grows while no call begins', () => {
  const forecast = new WaitForecast()
  beginCalls(forecast, 1, 5_000)
  forecast.addTime(2_000)
  expect(forecast.waitMs(1_000)).toBeGreaterThan(10_000)
})
