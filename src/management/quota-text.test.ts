import { expect, test } from 'vitest'
import { quotaText, quotaUnitsText } from './quota-text.ts'

test.each([
  [500_000, 'USD', '500000 ($1.00)'],
  [1, 'USD', '1 ($0.000002)'],
  [-250_000, 'USD', '-250000 (-$0.50)'],
  [617_283_500_000, 'USD', '617283500000 ($1,234,567.00)'],
  [500_000, 'CNY', '500000 (¥7.30)'],
  [500_000, 'TOKENS', '500000'],
] as const)('quota is printed as units or money: %i units in %s as %s', (quota, display, text) => {
  expect(quotaText(quota, { display, quota_per_unit: 500_000, usd_exchange_rate: 7.3 })).toBe(text)
})

test('an amount of less than a millionth is not printed as nothing', () => {
  const display = { display: 'USD', quota_per_unit: 9_000_000, usd_exchange_rate: 7.3 } as const
  expect(quotaText(1, display)).toBe('1 (<$0.000001)')
  expect(quotaText(-4, display)).toBe('-4 (-<$0.000001)')
  expect(quotaText(9, display)).toBe('9 ($0.000001)')
  expect(quotaText(0, display)).toBe('0 ($0.00)')
})

test('a text that stands alone names the unit', () => {
  const display = { display: 'USD', quota_per_unit: 500_000, usd_exchange_rate: 7 } as const
  expect(quotaUnitsText(500_000, display)).toBe('500000 quota units ($1.00)')
  expect(quotaUnitsText(500_000, { ...display, display: 'TOKENS' })).toBe('500000 quota units')
})
