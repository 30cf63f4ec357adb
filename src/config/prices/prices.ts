import { type Decimal, multiply } from '../../domain/decimal.ts'
import type { Price, TokenPrices } from '../../domain/price.ts'
import { decimal, type Field, integer, list, section } from '../fields.ts'

/** The price of something free. */
export const ZERO: Decimal = { digits: 0n, scale: 0 }

/** USD per web search where no price is stated. */
export const DEFAULT_WEB_SEARCH_PRICE: Decimal = { digits: 1n, scale: 2 }

/** Prices per million tokens; those of cached tokens are optional. */
export interface GivenPrices {
  readonly input: Decimal
  readonly output: Decimal
  readonly cacheRead?: Decimal | undefined
  readonly cacheWrite5m?: Decimal | undefined
  readonly cacheWrite1h?: Decimal | undefined
}

/**
 * Derives missing cache prices from the input price: reads cost a tenth of it, writes 1.25 times (5 minutes)
 * and twice (1 hour) as much.
 */
export function completePrices(given: GivenPrices): TokenPrices {
  const { input, output } = given
  return {
    input,
    output,
    cacheRead: given.cacheRead ?? multiply(input, { digits: 1n, scale: 1 }),
    cacheWrite5m: given.cacheWrite5m ?? multiply(input, { digits: 125n, scale: 2 }),
    cacheWrite1h: given.cacheWrite1h ?? multiply(input, { digits: 2n, scale: 0 }),
  }
}

const amount = decimal()
const cached = {
  cache_read: amount.optional(),
  cache_write_5m: amount.optional(),
  cache_write_1h: amount.optional(),
}

const tier = section({ above: integer(1), input: amount, output: amount, ...cached }).transform(
  ({ above, ...prices }) => ({ above, tokens: completeWrittenPrices(prices) }),
)

/** `docs/configuration.md: Prices`. */
export const price: Field<Price> = section({
  input: amount.optional(),
  output: amount.optional(),
  ...cached,
  request: amount.optional(),
  web_search: amount.default(DEFAULT_WEB_SEARCH_PRICE),
  tiers: list(tier, 'a list of { above, input, output }'),
})
  .superRefine((given, ctx) => {
    const { input, output, request } = given
    const perToken = [given.cache_read, given.cache_write_5m, given.cache_write_1h, given.tiers[0]]
    const onlyPerCall = request && !input && !output && perToken.every((value) => value === undefined)
    const missing = (key: string): void =>
      ctx.addIssue({
        code: 'custom',
        path: [key],
        message: 'expected a price per million tokens (0 if it is free), found nothing',
      })
    if (!input && !onlyPerCall) missing('input')
    if (!output && !onlyPerCall) missing('output')
    for (const [index, { above }] of given.tiers.entries()) {
      const last = given.tiers[index - 1]?.above ?? 0
      if (above > last) continue
      ctx.addIssue({
        code: 'custom',
        path: ['tiers', index, 'above'],
        message: `expected more than ${last}, found ${above}`,
      })
    }
  })
  .transform((given) => ({
    tokens: completeWrittenPrices({ ...given, input: given.input ?? ZERO, output: given.output ?? ZERO }),
    tiers: given.tiers,
    request: given.request ?? ZERO,
    webSearch: given.web_search,
  }))

interface WrittenPrices {
  readonly input: Decimal
  readonly output: Decimal
  readonly cache_read?: Decimal | undefined
  readonly cache_write_5m?: Decimal | undefined
  readonly cache_write_1h?: Decimal | undefined
}

function completeWrittenPrices(given: WrittenPrices): TokenPrices {
  return completePrices({
    input: given.input,
    output: given.output,
    cacheRead: given.cache_read,
    cacheWrite5m: given.cache_write_5m,
    cacheWrite1h: given.cache_write_1h,
  })
}
