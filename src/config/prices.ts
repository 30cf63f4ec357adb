import { TOOL_KINDS, type ToolKind } from '@sluice/wire/tool-use'
import { z } from 'zod'
import { type Decimal, ZERO } from '../domain/decimal.ts'
import {
  valueForEachUnit,
  type ImagePrices,
  SINGLE_PRICE_UNITS,
  type Price,
  type ServicePrice,
  type TieredTokenPrices,
} from '../domain/price.ts'
import { PRICED_TIER_DESCRIPTION, pricedTierName } from '../domain/service-tier.ts'
import { valueForEachTokenKind, completeTokenPrices, TOKEN_KINDS } from '../domain/token-kinds.ts'
import type { ToolPrices } from '../domain/tool-use.ts'
import {
  decimalSchema,
  dictionarySchema,
  type Field,
  integerSchema,
  listSchema,
  sectionSchema,
} from './fields.ts'
import { YamlScalar } from './yaml-node.ts'

const amount = decimalSchema()

/**
 * Key of an image price: a size, a size with a quality, or `default`. Examples: `1024x1024`, `1024x1024/hd`,
 * `auto/high`.
 */
const FORM = /^[a-z0-9][\w.-]{0,40}(?:\/[a-z0-9][\w.-]{0,40})?$/i

const byForm = dictionarySchema(amount, 'a mapping from SIZE, SIZE/QUALITY or default to USD per image')

/** USD per image: a number, or a mapping by size and quality. `docs/configuration.md: Prices`. */
const imagePrices: Field<ImagePrices> = z.unknown().transform((given, ctx): ImagePrices => {
  const isOne = given instanceof YamlScalar
  const { data, error } = isOne ? amount.safeParse(given) : byForm.safeParse(given)
  for (const { message, path } of error?.issues ?? [])
    ctx.issues.push({ code: 'custom', message, path, input: undefined })
  if (data === undefined) return z.NEVER
  if (!(data instanceof Map)) return { default: data as ImagePrices[string] }
  const entries = [...(data as ReadonlyMap<string, ImagePrices[string]>)]
  for (const [form] of entries) {
    if (FORM.test(form)) continue
    const message = 'expected SIZE, SIZE/QUALITY or default, such as 1024x1024/hd'
    ctx.issues.push({ code: 'custom', message, path: [form], input: undefined })
  }
  if (entries.length === 0)
    ctx.issues.push({
      code: 'custom',
      message: 'expected a price per image, found nothing',
      input: undefined,
    })
  return Object.fromEntries(entries)
})

const tokenPrices = valueForEachTokenKind(() => amount.optional())
const requiredPrices = valueForEachTokenKind(({ isRequired }) => (isRequired ? amount : amount.optional()))

const tier = sectionSchema({ above: integerSchema(1), ...requiredPrices })

const tiers = listSchema(tier, 'a list of { above, input, output }')

/** Reports an error for tiers whose `above` is not in ascending order. */
function checkTiers(given: readonly { readonly above: number }[], ctx: z.RefinementCtx): void {
  for (const [index, { above }] of given.entries()) {
    const last = given[index - 1]?.above ?? 0
    if (above > last) continue
    ctx.addIssue({
      code: 'custom',
      path: ['tiers', index, 'above'],
      message: `expected more than ${last}, found ${above}`,
    })
  }
}

/** Token prices of a provider's service tier, and the higher ones for large prompts. */
const tierPrices: Field<TieredTokenPrices> = sectionSchema({ ...requiredPrices, tiers })
  .superRefine((given, ctx) => checkTiers(given.tiers, ctx))
  .transform((given) => ({
    tokens: completeTokenPrices(given),
    tiers: given.tiers.map(({ above, ...stated }) => ({ above, tokens: completeTokenPrices(stated) })),
  }))

const factor = decimalSchema({ aboveZero: false })

const serviceTerms: Field<ServicePrice> = z.unknown().transform((given, ctx): ServicePrice => {
  const { data, error } = (given instanceof YamlScalar ? factor : tierPrices).safeParse(given)
  for (const { message, path } of error?.issues ?? [])
    ctx.issues.push({ code: 'custom', message, path, input: undefined })
  return data ?? z.NEVER
})

/**
 * Prices by the provider's service tier, such as `priority` or `flex`. `docs/configuration.md: Tiers of
 * service`.
 */
const service: Field<Price['service']> = dictionarySchema(
  serviceTerms,
  'a mapping from tiers of service to a number or a price',
).transform((given, ctx) => {
  const prices: Record<string, ServicePrice> = {}
  for (const [name, one] of given) {
    const tierName = pricedTierName(name)
    const refuse = (message: string): void => {
      ctx.issues.push({ code: 'custom', message, path: [name], input: undefined })
    }
    if (tierName === undefined) refuse(`expected ${PRICED_TIER_DESCRIPTION}`)
    else if (Object.hasOwn(prices, tierName)) refuse('is another name of fast, which is there as well')
    else prices[tierName] = one
  }
  return prices
})

const REGION = /^[a-z][a-z0-9_-]{0,39}$/

/** Factors that multiply the token prices, by region. */
const regions: Field<Price['regions']> = dictionarySchema(
  factor,
  'a mapping from regions to a number',
).transform((given, ctx) => {
  for (const name of given.keys())
    if (!REGION.test(name))
      ctx.issues.push({
        code: 'custom',
        message: 'expected the name of a region, such as us or europe-west4',
        path: [name],
        input: undefined,
      })
  return Object.fromEntries(given)
})

const tools = sectionSchema(
  Object.fromEntries(TOOL_KINDS.map((kind) => [kind, amount.optional()])) as Record<
    ToolKind,
    ReturnType<typeof amount.optional>
  >,
)

/** Schema of a model's price: `docs/configuration.md: Prices`. */
export const priceSchema: Field<Price> = sectionSchema({
  ...tokenPrices,
  request: amount.optional(),
  web_search: amount.optional(),
  tools: tools.optional(),
  ...valueForEachUnit(() => amount.optional()),
  image: imagePrices.optional(),
  tiers,
  service: service.optional(),
  regions: regions.optional(),
})
  .superRefine((given, ctx) => {
    const perToken = [...TOKEN_KINDS.map(({ name }) => given[name]), given.tiers[0]]
    const hasOther = [given.request, ...SINGLE_PRICE_UNITS.map(({ name }) => given[name]), given.image].some(
      (value) => value !== undefined,
    )
    const isOther = hasOther && perToken.every((value) => value === undefined)
    for (const { name } of isOther ? [] : TOKEN_KINDS.filter((kind) => kind.isRequired && !given[kind.name]))
      ctx.addIssue({
        code: 'custom',
        path: [name],
        message: 'expected a price per million tokens (0 if it is free), found nothing',
      })
    if (given.web_search && given.tools?.web_search)
      ctx.addIssue({
        code: 'custom',
        path: ['web_search'],
        message: 'is another name of tools.web_search, which is there as well: expected one of them',
      })
    checkTiers(given.tiers, ctx)
  })
  .transform((given) => ({
    tokens: completeTokenPrices({ ...given, output: given.output ?? ZERO }),
    // A price for a part of the tokens, such as audio, applies in every tier that states no other.
    tiers: given.tiers.map((one) => ({
      above: one.above,
      tokens: completeTokenPrices(
        valueForEachTokenKind(({ name, partOf }) => one[name] ?? (partOf ? given[name] : undefined)),
      ),
    })),
    request: given.request ?? ZERO,
    tools: toolPrices({ ...given.tools, web_search: given.tools?.web_search ?? given.web_search }),
    ...valueForEachUnit(({ name }) => given[name] ?? ZERO),
    image: given.image ?? {},
    service: given.service ?? {},
    regions: given.regions ?? {},
  }))

function toolPrices(given: { readonly [Kind in ToolKind]?: Decimal | undefined }): ToolPrices {
  const stated = Object.entries(given).filter(([, value]) => value !== undefined)
  return Object.fromEntries(stated)
}
