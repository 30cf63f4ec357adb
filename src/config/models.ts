import type { RateLimit } from '../domain/channel.ts'
import type { Price } from '../domain/price.ts'
import type { StatedCapabilities } from '../domain/settings.ts'
import { dictionary, type Field, flag, name, oneOf, section } from './fields.ts'
import { price } from './prices/prices.ts'
import { rateLimit } from './rate-limits.ts'

/** A model as the file declares it; the rest comes from the built-in prices. */
export interface ModelEntry {
  readonly vendor: string | undefined
  readonly price: Price | undefined
  readonly rateLimit: RateLimit
  readonly capabilities: StatedCapabilities
}

/** `docs/configuration.md: Models`. */
export const models: Field<ReadonlyMap<string, ModelEntry>> = dictionary(
  section({
    vendor: name('the name of a vendor').optional(),
    price: price.optional(),
    rate_limit: rateLimit,
    sampling: flag.optional(),
    thinking: oneOf(['adaptive', 'budget', 'none']).optional(),
  }).transform(
    ({ vendor, price, rate_limit, sampling, thinking }): ModelEntry => ({
      vendor,
      price,
      rateLimit: rate_limit,
      capabilities: { sampling, thinking },
    }),
  ),
  'a mapping from model names',
)
