import { STANDARD_TIER_NAME, tierName } from '@sluice/wire/service-tier'

/** Describes tiers for which a price may be stated, for error messages. */
export const PRICED_TIER_DESCRIPTION =
  'a tier of service other than the standard one, such as flex, batch, fast or ultrafast'

/** The normalized name of a service tier for which a price may be stated; undefined for any other text. */
export function pricedTierName(given: string): string | undefined {
  const name = tierName(given)
  return name === STANDARD_TIER_NAME || name === 'auto' ? undefined : name
}
