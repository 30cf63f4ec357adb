import { expect, test } from 'vitest'
import { WaitForecast } from './wait-forecast.ts'

/** Calls begin one every so many milliseconds, for so long. */
function begin(forecast: WaitForecast, everyMs: number, forMs: number): void {
  for (let ms = 0; ms < forMs; ms += everyMs) {
    forecast.passed(everyMs)
    forecast.began()
  }
}

test('the wait is as long as it takes at the rate of late until all in front have begun', () => {
  const forecast = new WaitForecast()
  begin(forecast, 4, 5_000)
  expect(forecast.waitMs(500)).toBeCloseTo(2_000, -2)
  expect(forecast.waitMs(0)).toBe(0)
})

test('nothing is known before anything was measured', () => {
  expect(new WaitForecast().waitMs(5_000)).toBe(0)
})

test('a rate that changes is believed within a second or two', () => {
  const forecast = new WaitForecast()
  begin(forecast, 1, 60_000)
  begin(forecast, 4, 3_000)
  expect(forecast.waitMs(1_000)).toBeGreaterThan(3_000)
})

test('the wait grows while nobody begins', () => {
  const forecast = new WaitForecast()
  begin(forecast, 1, 5_000)
  forecast.passed(2_000)
  expect(forecast.waitMs(1_000)).toBeGreaterThan(10_000)
})
