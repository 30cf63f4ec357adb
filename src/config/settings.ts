import type { Channel } from '../domain/channel.ts'
import type { Settings } from '../domain/settings.ts'
import type { BuiltInPrices } from './prices/built-in-prices.ts'
import { catalogue } from './catalogue.ts'
import type { FileContent } from './content.ts'
import { priceVersion } from './prices/price-version.ts'
import type { VendorChannels } from './vendors/vendor-channels.ts'

/** Builds settings from the file's sections, these channels and the built-in prices. */
export function settingsOf(
  { options, rateLimits, groups, models }: FileContent,
  channels: readonly Channel[],
  { preferred }: VendorChannels,
  builtIn: BuiltInPrices,
): Settings {
  const priced = { quotaPerUnit: options.quotaPerUnit, groups, models, preferred }
  return {
    priceVersion: priceVersion({ ...priced, builtInVersion: builtIn.version }),
    options,
    rateLimits,
    groups,
    models: catalogue(models, preferred, builtIn),
    channels,
  }
}
