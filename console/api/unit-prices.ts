/** What a price may be for, other than tokens. Characters are a million of them. */
export const PRICE_UNITS = ['request', 'second', 'characters', 'search_unit', 'image'] as const

/** A price in USD for one of something other than tokens. */
export interface UnitPrice {
  readonly unit: (typeof PRICE_UNITS)[number]
  readonly usd: number
  /** Whether it is the lowest of several, such as those of images by size. */
  readonly isLowest: boolean
}

/** Picks the prices that are not for tokens out of a model's prices, by unit; a price of 0 counts as none. */
export function unitPrices(prices: Readonly<Record<string, unknown>>): readonly UnitPrice[] {
  return PRICE_UNITS.flatMap((unit) => {
    const given = prices[unit]
    const several = typeof given === 'object' && given !== null ? Object.values(given) : [given]
    const amounts = several.map(Number).filter((amount) => amount > 0)
    if (amounts.length === 0) return []
    const usd = Math.min(...amounts)
    return [{ unit, usd, isLowest: amounts.some((amount) => amount > usd) }]
  })
}
