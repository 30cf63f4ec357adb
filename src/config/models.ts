import type { RateLimit } from '../domain/channel.ts'
import type { Price } from '../domain/price.ts'
import { dictionary, type Field, name, section } from './fields.ts'
import { price } from './prices.ts'
import { rateLimit } from './rate-limits.ts'

/** What the file says of a model; the rest comes from the built-in prices. */
export interface ModelEntry {
  readonly vendor: string | undefined
  readonly price: Price | undefined
  readonly rateLimit: RateLimit
}

/** `docs/configuration.md: Models`. */
export const models: Field<ReadonlyMap<string, ModelEntry>> = dictionary(
  section({
    vendor: name('the name of a vendor').optional(),
    price: price.optional(),
    rate_limit: rateLimit,
  }).transform(
    (given): ModelEntry => ({ vendor: given.vendor, price: given.price, rateLimit: given.rate_limit }),
  ),
  'a mapping from model names',
)
