import { type Decimal, decimalText, divide, multiply } from './decimal.ts'
import type { Options } from './settings.ts'

/** Places after the point: at any `quota_per_unit` one quota unit is still seen, and told from two. */
const PLACES = 12

/**
 * Quota units in the display that the operator chose: dollars, yuan, or the units themselves; `times` as many
 * of them. Exact where the division ends within 12 places, else rounded once. `docs/api.md: Self-check and
 * billing`.
 */
export function displayAmount(
  quota: number,
  options: Pick<Options, 'display' | 'quotaPerUnit' | 'usdExchangeRate'>,
  times = 1,
): Decimal {
  const units = { digits: BigInt(quota) * BigInt(times), scale: 0 }
  const perUnit: Decimal = { digits: BigInt(options.quotaPerUnit), scale: 0 }
  switch (options.display) {
    case 'TOKENS':
      return units
    case 'USD':
      return divide(units, perUnit, PLACES)
    case 'CNY':
      return divide(multiply(units, options.usdExchangeRate), perUnit, PLACES)
  }
}

const SIGNS = { USD: '$', CNY: '¥' } as const

/**
 * An amount of money as a message states it, rounded up or down: `$12.30`, `¥0.0042`. Two places, or the
 * first two digits of what is less than a tenth. Undefined where quota is shown in units.
 */
export function amountText(
  quota: number,
  options: Pick<Options, 'display' | 'quotaPerUnit' | 'usdExchangeRate'>,
  rounding: 'up' | 'down',
): string | undefined {
  if (options.display === 'TOKENS') return undefined
  const { digits, scale } = displayAmount(Math.abs(quota), options)
  const zeros = scale - digits.toString().length
  const places = Math.min(scale, digits === 0n ? 2 : Math.max(2, zeros + 2))
  const least = 10n ** BigInt(scale - places)
  const away = (rounding === 'up') === quota > 0 && digits % least > 0n
  const [whole = '', fraction = ''] = decimalText({
    digits: digits / least + (away ? 1n : 0n),
    scale: places,
  }).split('.')
  return `${quota < 0 ? '-' : ''}${SIGNS[options.display]}${whole}.${fraction.padEnd(2, '0')}`
}
