import { expect, test } from 'vitest'
import { isOutdatedPriceData } from './list-prices.ts'

test('built-in price data count as outdated when they are more than 90 days old', () => {
  expect(isOutdatedPriceData('2026-11-23', Date.parse('2027-02-21'))).toBe(false)
  expect(isOutdatedPriceData('2026-11-23', Date.parse('2027-02-22'))).toBe(true)
})
