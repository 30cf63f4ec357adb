import { STANDARD, tierName } from '@sluice/wire/service-tier'

/** What a price may be stated for, as messages describe it. */
export const PRICED_TIER =
  'a tier of service other than the standard one, such as flex, batch, fast or ultrafast'

/** The name of a tier that a price may be stated for; undefined for any other text. */
export function pricedTierName(given: string): string | undefined {
  const name = tierName(given)
  return name === STANDARD || name === 'auto' ? undefined : name
}
