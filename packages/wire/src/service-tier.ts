/** The service tier in which the model's prices apply unchanged. */
export const STANDARD_TIER_NAME = 'standard'

/** The service tier for capacity that is reserved and paid in advance. */
export const PROVISIONED_TIER_NAME = 'provisioned'

/** Beta feature that some models need for `speed: fast`. */
export const FAST_MODE_BETA = 'fast-mode-2026-02-01'

/** Names of tiers that providers write differently. Any other tier keeps its name in lower case. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['priority', 'fast'],
  ['default', STANDARD_TIER_NAME],
  ['on_demand', STANDARD_TIER_NAME],
  ['standard_only', STANDARD_TIER_NAME],
  ['scale', 'reserved'],
])

/** What chat and responses clients call the tiers that have other names here. */
const OPENAI_NAMES: ReadonlyMap<string, string> = new Map([
  [STANDARD_TIER_NAME, 'default'],
  ['fast', 'priority'],
  ['reserved', 'scale'],
])

const NAME = /^[a-z][a-z0-9_-]{0,31}$/

/**
 * Normalizes the name of a service tier for the usage log, prices and alerts; undefined if the text cannot be
 * the name of a tier. `auto` is kept: with it, a request leaves the choice to the provider.
 */
export function tierName(given: string): string | undefined {
  const lower = given.toLowerCase()
  if (!NAME.test(lower)) return undefined
  return OTHER_NAMES.get(lower) ?? lower
}

/** What a response states about the service tier and the region that the provider used. */
export interface StatedService {
  /** The service tier; absent if not stated. */
  readonly tier?: string
  /** The region in which the provider worked; absent if not stated. */
  readonly region?: string
}

const NOTHING: StatedService = {}
/** Results of `statedTier` for the most frequent tiers. They are shared to avoid creating objects. */
const KNOWN = new Map<string, StatedService>([[STANDARD_TIER_NAME, { tier: STANDARD_TIER_NAME }]])

/** Reads the tier from a chat, responses or Converse response. `auto` counts as not stated. */
export function statedTier(value: unknown): StatedService {
  const tier = typeof value === 'string' ? tierName(value) : undefined
  if (tier === undefined || tier === 'auto') return NOTHING
  return KNOWN.get(tier) ?? { tier }
}

/** Writes the tier as an object to spread into a chat response; empty if not stated. */
export function openAiTierMember(served: StatedService | undefined): { readonly service_tier?: string } {
  const tier = served?.tier
  return tier === undefined ? {} : { service_tier: OPENAI_NAMES.get(tier) ?? tier }
}

/** The tier of a response as an object to spread into a reply; empty if not stated. */
export function statedServiceMember(value: unknown): { readonly served?: StatedService } {
  return withStatedService({}, statedTier(value))
}

/**
 * Merges what a stream has stated about tier and region so far with what a later event states. An event that
 * states neither changes nothing.
 */
export function laterStatedService(
  before: StatedService | undefined,
  later: StatedService,
): StatedService | undefined {
  return later === NOTHING ? before : { ...before, ...later }
}

/** Service tiers by Google's `trafficType`, for those whose names differ. */
const TRAFFIC: ReadonlyMap<string, string> = new Map([
  ['on_demand_priority', 'fast'],
  ['on_demand_flex', 'flex'],
  ['on_demand_offpeak', 'offpeak'],
  ['provisioned_throughput', PROVISIONED_TIER_NAME],
])

/**
 * Reads the service tier from the first value that states one. Values can be Google's `serviceTier` or
 * `trafficType`, or a header.
 */
export function firstStatedTier(...values: readonly unknown[]): StatedService {
  for (const value of values) {
    if (typeof value !== 'string') continue
    const name = value.toLowerCase().replace(/^(?:service_tier|traffic_type)_/, '')
    if (name === 'unspecified') continue
    const served = statedTier(TRAFFIC.get(name) ?? name)
    if (served.tier !== undefined) return served
  }
  return NOTHING
}

/** Returns the name of a region for the usage log and prices; undefined if the value cannot be one. */
export function regionName(value: unknown): string | undefined {
  return typeof value === 'string' && REGION.test(value) ? value : undefined
}

const REGION = /^[a-z][a-z0-9_-]{0,39}$/

/**
 * Reads service tier and region from the usage of a messages response. `priority` means capacity that was
 * reserved in advance; `speed` is a separate field.
 */
export function statedServiceOfMessages(usage: Readonly<Record<string, unknown>>): StatedService {
  const { service_tier: stated, speed, inference_geo: geo } = usage
  const tier = speed === 'fast' ? 'fast' : stated === 'priority' ? 'reserved' : statedTier(stated).tier
  const region = regionName(geo)
  if (region === undefined) return tier === undefined ? NOTHING : (KNOWN.get(tier) ?? { tier })
  return { ...(tier !== undefined && { tier }), region }
}

/** Adds tier and region of a response to its usage. */
export function withStatedService<T extends object>(
  usage: T,
  served: StatedService,
): T & { readonly served?: StatedService } {
  return served === NOTHING ? usage : { ...usage, served }
}

/** Names of the members in which requests state a service tier, in order of preference. */
const REQUESTED = ['speed', 'service_tier', 'serviceTier'] as const

/**
 * Returns the tier that a request names; `speed: fast` is the tier `fast`. Undefined if it names none, or the
 * standard speed.
 */
export function requestedTier(member: (name: string) => unknown): string | undefined {
  for (const name of REQUESTED) {
    const value = member(name)
    const tier = typeof value === 'string' ? tierName(value.replace(/^SERVICE_TIER_/i, '')) : undefined
    if (tier !== undefined && !(name === 'speed' && tier === STANDARD_TIER_NAME)) return tier
  }
  return undefined
}
