/** The tier of service without a price of its own. */
export const STANDARD = 'standard'

/** The tier of provisioned throughput, which is paid beforehand. */
export const PROVISIONED = 'provisioned'

/** Other names of tiers. A tier without one is written by its own name, in lower case. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['priority', 'fast'],
  ['default', STANDARD],
  ['on_demand', STANDARD],
  ['standard_only', STANDARD],
  ['scale', 'reserved'],
])

const NAME = /^[a-z][a-z0-9_-]{0,31}$/

/**
 * The name of a tier of service in rows, prices and alerts; undefined if it cannot be one. `auto` stays, for
 * requests that leave the choice to the provider.
 */
export function tierName(given: string): string | undefined {
  const lower = given.toLowerCase()
  if (!NAME.test(lower)) return undefined
  return OTHER_NAMES.get(lower) ?? lower
}

/** What a price may be stated for, as messages describe it. */
export const PRICED_TIER =
  'a tier of service other than the standard one, such as flex, batch, fast or ultrafast'

/** The name of a tier that a price may be stated for; undefined for any other text. */
export function pricedTierName(given: string): string | undefined {
  const name = tierName(given)
  return name === STANDARD || name === 'auto' ? undefined : name
}
