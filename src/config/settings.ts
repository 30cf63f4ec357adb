import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import type { BuiltInPrices } from './prices/built-in-prices.ts'
import { catalogue } from './catalogue.ts'
import type { FileContent } from './content.ts'
import { withModelNames } from './model-patterns.ts'
import { priceVersion } from './prices/price-version.ts'
import type { VendorChannels } from './vendors/vendor-channels.ts'

/**
 * Builds settings from the file's sections, the given channels and the built-in prices. Patterns of models
 * are replaced by names.
 */
export function settingsOf(
  { options, rateLimits, groups, models, login, alerts }: FileContent,
  channels: readonly Channel[],
  { preferred }: VendorChannels,
  builtIn: BuiltInPrices,
): Settings {
  const priced = { quotaPerUnit: options.quota_per_unit, groups, models, preferred }
  const modelCatalogue = catalogue(models, preferred, builtIn)
  return {
    priceVersion: priceVersion({ ...priced, builtInVersion: builtIn.version }),
    options,
    rateLimits,
    groups,
    login,
    alerts,
    models: modelCatalogue,
    channels: withModelNames(channels, modelCatalogue, builtIn),
  }
}
