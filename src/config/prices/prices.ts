import { type Decimal, multiply } from '../../domain/decimal.ts'
import { type Price, type TokenPrices, withModalities } from '../../domain/price.ts'
import { TOOL_KINDS, type ToolKind, type ToolPrices } from '../../domain/tool-use.ts'
import { decimal, type Field, integer, list, section } from '../fields.ts'
import { imagePrices } from './image-prices.ts'

/** The price of something free. */
export const ZERO: Decimal = { digits: 0n, scale: 0 }

/** Prices per million tokens; those other than input and output are optional. */
export type GivenPrices = Pick<TokenPrices, 'input' | 'output'> & {
  readonly [Kind in Exclude<keyof TokenPrices, 'input' | 'output'>]?: Decimal | undefined
}

/**
 * Derives missing prices: reads from a cache cost a tenth of the input, writes 1.25 times (5 minutes) and
 * twice (1 hour) as much; audio and images cost as much as text.
 */
export function completePrices(given: GivenPrices): TokenPrices {
  const { input } = given
  return withModalities({
    ...given,
    cacheRead: given.cacheRead ?? multiply(input, { digits: 1n, scale: 1 }),
    cacheWrite5m: given.cacheWrite5m ?? multiply(input, { digits: 125n, scale: 2 }),
    cacheWrite1h: given.cacheWrite1h ?? multiply(input, { digits: 2n, scale: 0 }),
  })
}

const amount = decimal()
const furtherTokens = {
  cache_read: amount.optional(),
  cache_write_5m: amount.optional(),
  cache_write_1h: amount.optional(),
  audio_input: amount.optional(),
  audio_output: amount.optional(),
  image_input: amount.optional(),
  image_output: amount.optional(),
  audio_cache_read: amount.optional(),
  image_cache_read: amount.optional(),
}

const FURTHER_KEYS = Object.keys(furtherTokens) as (keyof typeof furtherTokens)[]

const tier = section({ above: integer(1), input: amount, output: amount, ...furtherTokens })

const tools = section(
  Object.fromEntries(TOOL_KINDS.map((kind) => [kind, amount.optional()])) as Record<
    ToolKind,
    ReturnType<typeof amount.optional>
  >,
)

/** `docs/configuration.md: Prices`. */
export const price: Field<Price> = section({
  input: amount.optional(),
  output: amount.optional(),
  ...furtherTokens,
  request: amount.optional(),
  web_search: amount.optional(),
  tools: tools.optional(),
  characters: amount.optional(),
  second: amount.optional(),
  search_unit: amount.optional(),
  image: imagePrices.optional(),
  tiers: list(tier, 'a list of { above, input, output }'),
})
  .superRefine((given, ctx) => {
    const { input, output, request, characters, second, search_unit, image } = given
    const perToken = [...FURTHER_KEYS.map((key) => given[key]), given.tiers[0]]
    const hasOther = [request, characters, second, search_unit, image].some((value) => value !== undefined)
    const isOther = hasOther && !input && !output && perToken.every((value) => value === undefined)
    const missing = (key: string): void =>
      ctx.addIssue({
        code: 'custom',
        path: [key],
        message: 'expected a price per million tokens (0 if it is free), found nothing',
      })
    if (!input && !isOther) missing('input')
    if (!output && !isOther) missing('output')
    if (given.web_search && given.tools?.web_search)
      ctx.addIssue({
        code: 'custom',
        path: ['web_search'],
        message: 'is another name of tools.web_search, which is there as well: expected one of them',
      })
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
    // A stated price of audio or images holds for every tier that states no other.
    tiers: given.tiers.map((one) => ({
      above: one.above,
      tokens: completeWrittenPrices({
        ...one,
        audio_input: one.audio_input ?? given.audio_input,
        audio_output: one.audio_output ?? given.audio_output,
        image_input: one.image_input ?? given.image_input,
        image_output: one.image_output ?? given.image_output,
        audio_cache_read: one.audio_cache_read ?? given.audio_cache_read,
        image_cache_read: one.image_cache_read ?? given.image_cache_read,
      }),
    })),
    request: given.request ?? ZERO,
    tools: toolPrices({ ...given.tools, web_search: given.tools?.web_search ?? given.web_search }),
    characters: given.characters ?? ZERO,
    second: given.second ?? ZERO,
    searchUnit: given.search_unit ?? ZERO,
    image: given.image ?? {},
  }))

type WrittenPrices = Pick<TokenPrices, 'input' | 'output'> & {
  readonly [Key in keyof typeof furtherTokens]?: Decimal | undefined
}

function completeWrittenPrices(given: WrittenPrices): TokenPrices {
  return completePrices({
    input: given.input,
    output: given.output,
    cacheRead: given.cache_read,
    cacheWrite5m: given.cache_write_5m,
    cacheWrite1h: given.cache_write_1h,
    audioInput: given.audio_input,
    audioOutput: given.audio_output,
    imageInput: given.image_input,
    imageOutput: given.image_output,
    audioCacheRead: given.audio_cache_read,
    imageCacheRead: given.image_cache_read,
  })
}

function toolPrices(given: { readonly [Kind in ToolKind]?: Decimal | undefined }): ToolPrices {
  const stated = Object.entries(given).filter(([, value]) => value !== undefined)
  return Object.fromEntries(stated)
}
