import { expect, test } from 'vitest'
import { decimalText } from './decimal.ts'
import { amountText, displayAmount } from './display-amount.ts'

const RATE = { digits: 73n, scale: 1 }

test.each([
  [1_250_000, 'USD', 500_000, 1, '2.5'],
  [1_250_000, 'CNY', 500_000, 1, '18.25'],
  [1_250_000, 'TOKENS', 500_000, 1, '1250000'],
  [1_250_000, 'USD', 500_000, 100, '250'],
  [1_250_000, 'CNY', 500_000, 100, '1825'],
  [1_250_000, 'TOKENS', 500_000, 100, '125000000'],
  // Binary fractions would cause a rounding error in 3 × 7.3 / 500000.
  [3, 'CNY', 500_000, 1, '0.0000438'],
  [-7, 'USD', 500_000, 1, '-0.000014'],
  [1, 'USD', 3, 1, '0.333333333333'],
  [2, 'USD', 3, 100, '66.666666666667'],
  [1, 'USD', 9_000_000, 1, '0.000000111111'],
] as const)(
  '%i quota units in %s at %i a unit, %i times, are %s',
  (quota, display, quotaPerUnit, times, text) => {
    expect(
      decimalText(
        displayAmount(quota, { display, quota_per_unit: quotaPerUnit, usd_exchange_rate: RATE }, times),
      ),
    ).toBe(text)
  },
)

test.each([
  [4_000_294, 'USD', 'up', '$8.01'],
  [4_000_294, 'USD', 'down', '$8.00'],
  [4_000_000, 'USD', 'up', '$8.00'],
  [20_543, 'USD', 'up', '$0.042'],
  [20_543, 'USD', 'down', '$0.041'],
  [50_000, 'USD', 'up', '$0.10'],
  [499_999, 'USD', 'up', '$1.00'],
  [1, 'USD', 'up', '$0.000002'],
  [100, 'CNY', 'down', '¥0.0014'],
  [100, 'CNY', 'up', '¥0.0015'],
  [0, 'USD', 'down', '$0.00'],
  // Negative amounts are rounded down, away from zero.
  [-20_543, 'USD', 'down', '-$0.042'],
  [-20_543, 'USD', 'up', '-$0.041'],
  [7, 'TOKENS', 'up', undefined],
] as const)(
  'a rounded amount is displayed: %i quota units in %s, rounded %s, as %s',
  (quota, display, rounding, text) => {
    expect(amountText(quota, { display, quota_per_unit: 500_000, usd_exchange_rate: RATE }, rounding)).toBe(
      text,
    )
  },
)
