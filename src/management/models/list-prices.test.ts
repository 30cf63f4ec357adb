import { expect, test } from 'vitest'
import { isOldData } from './list-prices.ts'

test('built-in data are outdated when they are more than 90 days old', () => {
  expect(isOldData('2026-11-23', Date.parse('2027-02-21'))).toBe(false)
  expect(isOldData('2026-11-23', Date.parse('2027-02-22'))).toBe(true)
})
