import { type Decimal, divide, multiply } from './decimal.ts'
import type { Options } from './settings.ts'

/** Places after the point: at any `quota_per_unit` one quota unit is still seen, and told from two. */
const PLACES = 12

/**
 * Quota units in the display that the operator chose: dollars, yuan, or the units themselves; `times` as many of them. Exact
 * where the division ends within 12 places, else rounded once. `docs/api.md: Self-check and billing`.
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
