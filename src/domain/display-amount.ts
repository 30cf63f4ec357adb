import { type Decimal, decimalText, divide, multiply } from './decimal.ts'
import type { Options } from './options.ts'

/** Decimal places: enough to show a single quota unit at any `quota_per_unit`. */
const PLACES = 12

/**
 * A quota in the unit in which it is displayed: dollars, yuan or quota units, multiplied by `times`. Exact if
 * the quotient has at most 12 decimal places, otherwise rounded once. `docs/api.md: Self-check and billing`.
 */
export function displayAmount(
  quota: number,
  options: Pick<Options, 'display' | 'quota_per_unit' | 'usd_exchange_rate'>,
  times = 1,
): Decimal {
  const units = { digits: BigInt(quota) * BigInt(times), scale: 0 }
  const perUnit: Decimal = { digits: BigInt(options.quota_per_unit), scale: 0 }
  switch (options.display) {
    case 'TOKENS':
      return units
    case 'USD':
      return divide(units, perUnit, PLACES)
    case 'CNY':
      return divide(multiply(units, options.usd_exchange_rate), perUnit, PLACES)
  }
}

const SIGNS = { USD: '$', CNY: '¥' } as const

/**
 * An amount of money as text, rounded up or down: `$12.30`, `¥0.0042`. It has two decimal places; below 0.10
 * it has two significant digits. Undefined if quota is displayed in quota units.
 */
export function amountText(
  quota: number,
  options: Pick<Options, 'display' | 'quota_per_unit' | 'usd_exchange_rate'>,
  rounding: 'up' | 'down',
): string | undefined {
  if (options.display === 'TOKENS') return undefined
  const { digits, scale } = displayAmount(Math.abs(quota), options)
  const zeros = scale - digits.toString().length
  const places = Math.min(scale, digits === 0n ? 2 : Math.max(2, zeros + 2))
  const step = 10n ** BigInt(scale - places)
  const isRoundedAway = (rounding === 'up') === quota > 0 && digits % step > 0n
  const [integer = '', fraction = ''] = decimalText({
    digits: digits / step + (isRoundedAway ? 1n : 0n),
    scale: places,
  }).split('.')
  return `${quota < 0 ? '-' : ''}${SIGNS[options.display]}${integer}.${fraction.padEnd(2, '0')}`
}
