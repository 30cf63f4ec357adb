import { PROVISIONED_TIER_NAME, type StatedService, STANDARD_TIER_NAME } from '@sluice/wire/service-tier'
import { type Decimal, decimalText, isGreaterDecimal, multiply, ONE, parseDecimal, ZERO } from './decimal.ts'
import { vendorServiceOfChannel, type VendorServicePrices } from './price-data/index.ts'
import { isDecimal, type Price, type ChargeRate, chargeRateOf, type ServicePrice } from './price.ts'
import type { Channel } from './records/channel.ts'
import { valueForEachTokenKind, type TokenPrices } from './token-kinds.ts'

/** The properties of a channel on which prices of service tiers and regions depend. */
export type ServicePricingChannel = Pick<Channel, 'provider' | 'base_url' | 'region' | 'location'>

/**
 * The factors by which a call's token prices were multiplied because of its service tier and region, stored
 * with the call. Numbers are decimal texts.
 */
export interface ServicePriceTerms {
  /** Name of the tier, if its price is stated in `price.service`. */
  readonly tier?: string
  /** The factor for the tier, if the vendor's published price applied. */
  readonly factor?: string
  /** Set if the factor for the tier does not apply to tokens that are read from a prompt cache. */
  readonly keepsCacheRead?: true
  /** The factor for the region. */
  readonly region?: string
}

/** The rate at which an answer is charged, after its service tier and region are known. */
export interface ServiceRate {
  readonly rate: ChargeRate
  readonly tier: string
  readonly region: string
  /**
   * Whether the tier has no known price. The price of the model's most expensive tier is then charged, or its
   * own prices for a tier that is never more expensive.
   */
  readonly isUnpriced: boolean
  /** The factors that were applied; undefined if the model's own prices apply. */
  readonly terms: ServicePriceTerms | undefined
}

// The configuration makes new rates when prices change, so that cached values disappear with the old rates.
const cache = new WeakMap<ChargeRate, Map<string, ServiceRate>>()
/** Cached results of `serviceRate` for the standard tier without a region, which most calls have. */
const standard = new WeakMap<ChargeRate, ServiceRate>()

/** The properties of `T`, such as tier and region, each of which may be undefined. */
type Unstated<T> = { readonly [Name in keyof T]: T[Name] | undefined }

/**
 * Maximum number of cached results of `serviceRate` per rate. Providers may send any name of a tier, so the
 * cache must not grow without limit.
 */
const MAX_CACHED = 200

/**
 * The rate for a service tier and region. For the standard tier without a region it is the given rate itself.
 */
export function serviceRate(
  rate: ChargeRate,
  channel: ServicePricingChannel,
  model: string,
  { tier = STANDARD_TIER_NAME, region = declaredRegionOf(channel) }: Unstated<StatedService>,
): ServiceRate {
  if (tier === STANDARD_TIER_NAME && region === '') {
    let own = standard.get(rate)
    if (!own) standard.set(rate, (own = { rate, tier, region, isUnpriced: false, terms: undefined }))
    return own
  }
  let known = cache.get(rate)
  if (!known) cache.set(rate, (known = new Map()))
  const vendor = vendorServiceOfChannel(channel)
  const key = `${tier} ${region} ${vendor?.source ?? ''} ${model}`
  let served = known.get(key)
  if (!served) {
    served = resolve(rate, vendor, model, tier, region)
    if (known.size < MAX_CACHED) known.set(key, served)
  }
  return served
}

/** The region that a channel declares; empty if it declares none. */
export function declaredRegionOf({ location, region }: Pick<Channel, 'location' | 'region'>): string {
  return location ?? region ?? ''
}

/** A price whose token prices are multiplied by the factors of a service tier and a region. */
export function priceWithServiceFactors(
  price: Price,
  { tier, factor, keepsCacheRead, region }: ServicePriceTerms,
): Price {
  const own = tier === undefined ? undefined : price.service[tier]
  const stated = own === undefined || isDecimal(own) ? price : own
  const ofTier = own !== undefined && isDecimal(own) ? own : (decimalOf(factor) ?? ONE)
  const ofRegion = decimalOf(region) ?? ONE
  const product = multiply(ofTier, ofRegion)
  const times = (prices: TokenPrices): TokenPrices =>
    valueForEachTokenKind(({ name, cached }) =>
      multiply(prices[name], keepsCacheRead && cached?.side === 'read' ? ofRegion : product),
    )
  const tiers = stated.tiers.map((one) => ({ ...one, tokens: times(one.tokens) }))
  return { ...price, tokens: times(stated.tokens), tiers }
}

/**
 * All rates at which a request may be charged, so that quota can be reserved at the highest: one for each
 * tier in which it may be served, and for each region that the provider may choose. Vendors' published prices
 * count only for models that are known to have them.
 */
export function ratesToHold(
  rate: ChargeRate,
  channel: ServicePricingChannel,
  model: string,
  { tiers, region }: { readonly tiers: readonly string[]; readonly region: string | undefined },
): readonly ChargeRate[] {
  const vendor = vendorServiceOfChannel(channel)
  const regions = region === undefined ? possibleRegions(rate.price, vendor, channel, model) : [region]
  // Most requests can be served in one tier and region only, so there is only one rate.
  if (tiers.length === 1 && tiers[0] === STANDARD_TIER_NAME && regions.length === 1)
    return [serviceRate(rate, channel, model, { region: regions[0] }).rate]
  const has = (tier: string): boolean => {
    if (tier === STANDARD_TIER_NAME || tier === BATCH_TIER_NAME || Object.hasOwn(rate.price.service, tier))
      return true
    const listed = vendor?.tiers.filter((one) => one.tier === tier && one.has.test(model))
    return listed !== undefined && listed.length > 0
  }
  return tiers
    .filter(has)
    .flatMap((tier) => regions.map((one) => serviceRate(rate, channel, model, { tier, region: one }).rate))
}

function possibleRegions(
  { regions }: Price,
  vendor: VendorServicePrices | undefined,
  channel: ServicePricingChannel,
  model: string,
): readonly string[] {
  const own = declaredRegionOf(channel)
  // Other regions are possible only if the channel declares none and the vendor prices by region.
  if (own !== '' || !vendor || vendor.regions.length === 0) return [own]
  const stated = Object.keys(regions)
  const listed = vendor.regions.filter(({ has }) => has.test(model)).map(({ region }) => region)
  return [own, ...(stated.length > 0 ? stated : listed)]
}

function resolve(
  rate: ChargeRate,
  vendor: VendorServicePrices | undefined,
  model: string,
  tier: string,
  region: string,
): ServiceRate {
  const priced = termsOfTier(rate.price, vendor, model, tier)
  const regional = regionFactor(rate.price, vendor, region)
  const terms: ServicePriceTerms = {
    ...(priced ?? (CHEAP_TIERS.has(tier) ? {} : dearestTerms(rate.price, vendor, model))),
    ...(regional && { region: decimalText(regional) }),
  }
  const isUnpriced = priced === undefined && !rate.free
  if (Object.keys(terms).length === 0) return { rate, tier, region, isUnpriced, terms: undefined }
  const price = priceWithServiceFactors(rate.price, terms)
  return { rate: chargeRateOf(price, rate.ratio, rate.quotaPerUnit), tier, region, isUnpriced, terms }
}

/** The tier of results out of batches of providers. Without a price for it, a model costs its standard price there. */
export const BATCH_TIER_NAME = 'batch'

/** Tiers that providers offer at times of low demand. They never cost more than the standard tier. */
const CHEAP_TIERS: ReadonlySet<string> = new Set(['offpeak'])

/** The factor of a service tier; undefined if the tier has no price. */
function termsOfTier(
  price: Price,
  vendor: VendorServicePrices | undefined,
  model: string,
  tier: string,
): ServicePriceTerms | undefined {
  if (tier === STANDARD_TIER_NAME) return {}
  if (Object.hasOwn(price.service, tier)) return { tier }
  if (tier === 'reserved') return {}
  if (tier === PROVISIONED_TIER_NAME) return { factor: '0' }
  const listed = vendor?.tiers.find((one) => one.tier === tier && (one.models?.test(model) ?? true))
  if (listed) return { factor: listed.factor, ...(listed.keepsCacheRead && { keepsCacheRead: true }) }
  return tier === BATCH_TIER_NAME ? {} : undefined
}

/** The factor of the model's most expensive service tier. */
function dearestTerms(
  price: Price,
  vendor: VendorServicePrices | undefined,
  model: string,
): ServicePriceTerms {
  const names = new Set([...Object.keys(price.service), ...(vendor?.tiers ?? []).map(({ tier }) => tier)])
  let dearest: ServicePriceTerms = {}
  let most = weightOf(price)
  for (const name of names) {
    const terms = termsOfTier(price, vendor, model, name)
    const weight = terms && weightOf(priceWithServiceFactors(price, terms))
    if (!weight || !isGreaterDecimal(weight, most)) continue
    most = weight
    dearest = terms
  }
  return dearest
}

/** A number by which prices are compared: the sum of the input and output prices. */
function weightOf({ tokens }: Pick<Price, 'tokens'>): Decimal {
  const scale = Math.max(tokens.input.scale, tokens.output.scale)
  const at = ({ digits, scale: own }: Decimal): bigint => digits * 10n ** BigInt(scale - own)
  return { digits: at(tokens.input) + at(tokens.output), scale }
}

function regionFactor(
  { regions }: Price,
  vendor: VendorServicePrices | undefined,
  region: string,
): Decimal | undefined {
  if (region === '') return undefined
  if (Object.keys(regions).length > 0) return Object.hasOwn(regions, region) ? regions[region] : undefined
  return decimalOf(vendor?.regions.find((one) => one.region === region)?.factor)
}

function decimalOf(text: string | undefined): Decimal | undefined {
  return text === undefined ? undefined : (parseDecimal(text) ?? ZERO)
}

/**
 * The prices of service tiers and regions to be shown for a model: those that its price states, and the
 * vendor's published ones for all others.
 */
export function servicePricesToShow(
  price: Price,
  channel: ServicePricingChannel | undefined,
  model: string,
): { readonly service: Readonly<Record<string, ServicePrice>>; readonly regions: Price['regions'] } {
  const vendor = channel && vendorServiceOfChannel(channel)
  const defaults = new Map<string, ServicePrice>()
  for (const { tier, factor, models } of vendor?.tiers ?? [])
    if (!defaults.has(tier) && (models?.test(model) ?? true)) defaults.set(tier, decimalOf(factor) ?? ONE)
  const regions = Object.fromEntries(
    (vendor?.regions ?? []).map(({ region, factor }) => [region, decimalOf(factor) ?? ONE]),
  )
  return {
    service: { ...Object.fromEntries(defaults), ...price.service },
    regions: Object.keys(price.regions).length > 0 ? price.regions : regions,
  }
}
