import { PROTOCOLS } from '@sluice/wire/protocols'
import { createHash } from 'node:crypto'
import type { Decimal } from '../domain/decimal.ts'
import { isDecimal, SINGLE_PRICE_UNITS, type Price, type TieredTokenPrices } from '../domain/price.ts'
import { type Channel, CHANNEL_SETTINGS } from '../domain/records/channel.ts'
import type { Group } from '../domain/records/group.ts'
import { type Model, MODEL_SETTINGS, type ModelSettings } from '../domain/records/model.ts'
import type { McpSettings } from '../domain/mcp.ts'
import type { ModelCatalogue, Settings } from '../domain/settings.ts'
import { TOKEN_KINDS, type TokenPrices } from '../domain/token-kinds.ts'
import type { BuiltInPrices } from './built-in-prices.ts'
import type { PriceList } from './price-file.ts'
import type { ConfigFileContent } from './read-sections.ts'
import { DEFAULT_GROUP } from './groups.ts'
import { replaceModelPatterns } from './model-patterns.ts'
import { VENDORS } from './vendors.ts'

/**
 * Builds the settings from the file's sections and the given channels. `listed` has the prices of models that
 * the file does not price. Patterns in `models` are replaced by names.
 */
export function settingsOf(
  { options, rateLimits, groups, models, login, alerts, guards, contentLog, mcp }: ConfigFileContent,
  channels: readonly Channel[],
  { preferred }: VendorChannels,
  listed: PriceList,
): Settings {
  const aliases = aliasesOf(channels)
  const priced = {
    quotaPerUnit: options.quota_per_unit,
    groups,
    models,
    preferred,
    aliases,
    servers: mcp.servers,
  }
  const catalogue = modelCatalogue(models, preferred, listed, aliases)
  return {
    priceVersion: priceVersion({ ...priced, listedVersion: listed.version }),
    options,
    rateLimits,
    groups,
    login,
    alerts,
    guards,
    contentLog,
    mcp,
    models: catalogue,
    channels: replaceModelPatterns(channels, catalogue, listed),
  }
}

const MAX_CACHED_MODELS = 4096

/** Context length, in tokens, that is assumed for a model if the price data states none. */
const ASSUMED_CONTEXT_TOKENS = 200_000

/**
 * The names that all of their channels map to one and the same upstream model, with that model
 * (docs/configuration.md: Prices).
 */
function aliasesOf(channels: readonly Channel[]): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>()
  const others = new Set<string>()
  for (const { models, model_mapping: mapping } of channels) {
    for (const name of models) {
      const upstream = mapping.get(name) ?? name
      if (upstream === name || (aliases.get(name) ?? upstream) !== upstream) others.add(name)
      else aliases.set(name, upstream)
    }
  }
  for (const name of others) aliases.delete(name)
  return aliases
}

/**
 * Combines the declared models with the built-in prices. `preferred` names the vendor whose price list
 * applies, for models that are not declared. An alias without a price has that of its model.
 */
export function modelCatalogue(
  declared: ReadonlyMap<string, ModelSettings>,
  preferred: ReadonlyMap<string, string>,
  builtIn: BuiltInPrices,
  aliases: ReadonlyMap<string, string> = new Map(),
): ModelCatalogue {
  const models = new Map<string, Model>()
  const found = (name: string) => {
    const entry = declared.get(name)
    const listed = builtIn.get(name, entry?.vendor ?? preferred.get(name))
    return { entry, listed, price: entry?.price ?? listed?.price }
  }
  return Object.freeze({
    declared: Object.freeze([...declared.keys()]),
    get(name: string): Model {
      const own = found(name)
      const target = own.price ? undefined : aliases.get(name)
      const other = target === undefined ? own : found(target)
      const { listed, price } = other.price ? other : own
      const known = models.get(name)
      if (known && known.price === price) return known
      const model = Object.freeze({
        ...MODEL_SETTINGS.defaults,
        ...own.entry,
        name,
        vendor: own.entry?.vendor ?? listed?.vendor,
        price,
        pricedAs: price === own.price ? undefined : target,
        priceMoment: price === listed?.price ? listed?.moment : undefined,
        contextTokens: listed?.contextTokens ?? ASSUMED_CONTEXT_TOKENS,
        isContextKnown: listed?.contextTokens !== undefined,
      })
      if (own.entry || listed) {
        if (models.size >= MAX_CACHED_MODELS) models.clear()
        models.set(name, model)
      }
      return model
    },
  })
}

/**
 * Channels made from vendor keys in the environment, and the vendor whose price list applies to each model.
 */
export interface VendorChannels {
  readonly channels: readonly Channel[]
  readonly preferred: ReadonlyMap<string, string>
}

/**
 * Makes one channel for each vendor whose key is in the environment. It serves every model of the vendor's
 * price list, and the vendor's unpriced models, which need a price from the operator. A name that several
 * vendors list goes to the first of them, because a name can have only one price.
 */
export function vendorChannels(keys: ReadonlyMap<string, string>, builtIn: BuiltInPrices): VendorChannels {
  const preferred = new Map<string, string>()
  const channels = VENDORS.flatMap((vendor): Channel[] => {
    const { id, variables, protocol, baseUrl, unpriced = [] } = vendor
    const key = variables.map((variable) => keys.get(variable)).find((value) => value !== undefined)
    if (key === undefined) return []
    const models = [...builtIn.namesOf(vendor), ...unpriced].filter((name) => !preferred.has(name))
    for (const name of models) preferred.set(name, id)
    if (models.length === 0) return []
    return [
      {
        ...CHANNEL_SETTINGS.defaults,
        name: PROTOCOLS[protocol].isConversation ? id : `${id}-${protocol}`,
        protocol: [protocol],
        base_url: baseUrl,
        keys: [key],
        models,
        groups: [DEFAULT_GROUP],
      },
    ]
  })
  return { channels, preferred }
}

/** All settings that affect a charge. */
interface Priced {
  readonly quotaPerUnit: number
  readonly groups: ReadonlyMap<string, Group>
  readonly models: ReadonlyMap<string, ModelSettings>
  /** The vendor whose price list applies, by model. */
  readonly preferred: ReadonlyMap<string, string>
  /** The upstream's name of each alias. */
  readonly aliases: ReadonlyMap<string, string>
  readonly servers: McpSettings['servers']
  readonly listedVersion: string
}

/**
 * Twelve hexadecimal digits that identify a set of prices. Equal prices that are written differently have the
 * same digits.
 */
function priceVersion({
  quotaPerUnit,
  groups,
  models,
  preferred,
  aliases,
  servers,
  listedVersion,
}: Priced): string {
  const content = [
    quotaPerUnit,
    byName(groups, ({ ratio }) => canonical(ratio)),
    byName(models, ({ vendor, price }) => [vendor ?? null, price ? comparablePrice(price) : null]),
    byName(preferred, (vendor) => vendor),
    byName(aliases, (upstream) => upstream),
    listedVersion,
    ...servers.map(({ name, price }) => [name, canonical(price.call), byName(price.tools, canonical)]),
  ]
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 12)
}

function byName<T>(map: ReadonlyMap<string, T>, content: (value: T) => unknown): unknown[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, content(value)])
}

/** A price in a form that is the same for equal prices that are written differently. */
export function comparablePrice({
  tokens,
  tiers,
  image,
  tools,
  request,
  service,
  regions,
  ...units
}: Price): unknown[] {
  const images = Object.entries(image).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [
    ...tieredContent({ tokens, tiers }),
    ...[request, ...SINGLE_PRICE_UNITS.map(({ name }) => units[name])].map(canonical),
    Object.entries(tools)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([kind, value]) => [kind, canonical(value)]),
    images.map(([form, value]) => [form, canonical(value)]),
    byName(new Map(Object.entries(service)), (one) => (isDecimal(one) ? canonical(one) : tieredContent(one))),
    byName(new Map(Object.entries(regions)), canonical),
  ]
}

function tieredContent({ tokens, tiers }: TieredTokenPrices): unknown[] {
  return [tokensContent(tokens), tiers.map((one) => [one.above, tokensContent(one.tokens)])]
}

function tokensContent(tokens: TokenPrices): string[] {
  return TOKEN_KINDS.map(({ name }) => canonical(tokens[name]))
}

/** A decimal as text, the same for `0.30` and `0.3`. */
function canonical({ digits, scale }: Decimal): string {
  let [unscaled, places] = [digits, scale]
  while (places > 0 && unscaled % 10n === 0n) [unscaled, places] = [unscaled / 10n, places - 1]
  return `${unscaled}/${places}`
}
