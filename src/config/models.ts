import type { RateLimit } from '../domain/rate-limit.ts'
import type { Price } from '../domain/price.ts'
import type { Balance, StatedCapabilities } from '../domain/settings.ts'
import { dictionary, type Field, flag, list, name, oneOf, section } from './fields.ts'
import { price } from './prices/prices.ts'
import { rateLimit } from './rate-limits.ts'

/** A model as the file declares it; the rest comes from the built-in prices. */
export interface ModelEntry {
  readonly vendor: string | undefined
  readonly price: Price | undefined
  readonly rateLimit: RateLimit
  readonly capabilities: StatedCapabilities
  readonly fallback: readonly string[]
  readonly balance: Balance
}

/** `docs/configuration.md: Models`. */
export const models: Field<ReadonlyMap<string, ModelEntry>> = dictionary(
  section({
    vendor: name('the name of a vendor').optional(),
    price: price.optional(),
    rate_limit: rateLimit,
    sampling: flag.optional(),
    thinking: oneOf(['adaptive', 'budget', 'none']).optional(),
    takes_thoughts: flag.optional(),
    fallback: list(name('the name of a model'), 'a list of models'),
    balance: oneOf(['weight', 'least_busy', 'latency']).default('weight'),
  }).transform(
    ({ vendor, price, rate_limit, sampling, thinking, takes_thoughts, fallback, balance }): ModelEntry => ({
      vendor,
      price,
      rateLimit: rate_limit,
      capabilities: { sampling, thinking, takesThoughts: takes_thoughts },
      fallback,
      balance,
    }),
  ),
  'a mapping from model names',
).superRefine((given, ctx) => {
  for (const [model, { fallback }] of given) {
    const index = fallback.indexOf(model)
    if (index === -1) continue
    const message = 'expected another model than the one that it stands in for'
    ctx.addIssue({ code: 'custom', path: [model, 'fallback', index], message })
  }
})
