/** The service tier in which the model's prices apply unchanged. */
export const STANDARD = 'standard'

/** The service tier for capacity that is reserved and paid in advance. */
export const PROVISIONED = 'provisioned'

/** Beta feature that some models need for `speed: fast`. */
export const FAST_MODE_BETA = 'fast-mode-2026-02-01'

/** Names of tiers that providers write differently. Any other tier keeps its name in lower case. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['priority', 'fast'],
  ['default', STANDARD],
  ['on_demand', STANDARD],
  ['standard_only', STANDARD],
  ['scale', 'reserved'],
])

const NAME = /^[a-z][a-z0-9_-]{0,31}$/

/**
 * Normalizes the name of a service tier for the usage log, prices and alerts; undefined if it cannot be such
 * a name. `auto` is kept: with it, a request leaves the choice to the provider.
 */
export function tierName(given: string): string | undefined {
  const lower = given.toLowerCase()
  if (!NAME.test(lower)) return undefined
  return OTHER_NAMES.get(lower) ?? lower
}

/** What a response says about how it was served. */
export interface Served {
  /** The service tier; absent if not stated. */
  readonly tier?: string
  /** The region in which the provider worked; absent if not stated. */
  readonly region?: string
}

const NOTHING: Served = {}
/** Results for the most frequent tiers, shared to save memory allocations. */
const KNOWN = new Map<string, Served>([[STANDARD, { tier: STANDARD }]])

/** Reads the tier from a chat, responses or Converse response. `auto` counts as not stated. */
export function servedTier(value: unknown): Served {
  const tier = typeof value === 'string' ? tierName(value) : undefined
  if (tier === undefined || tier === 'auto') return NOTHING
  return KNOWN.get(tier) ?? { tier }
}

/** The tier of a response as an object to spread into a reply; empty if not stated. */
export function servedMember(value: unknown): { readonly served?: Served } {
  return withServed({}, servedTier(value))
}

/** Updates what a stream has stated with a later event. An event that states nothing changes nothing. */
export function laterServed(before: Served | undefined, later: Served): Served | undefined {
  return later === NOTHING ? before : { ...before, ...later }
}

/** Tiers by Google's traffic types, where the names differ. */
const TRAFFIC: ReadonlyMap<string, string> = new Map([
  ['on_demand_priority', 'fast'],
  ['on_demand_flex', 'flex'],
  ['on_demand_offpeak', 'offpeak'],
  ['provisioned_throughput', PROVISIONED],
])

/**
 * Reads the tier from the first value that states one. Values can be Google's `serviceTier` or `trafficType`,
 * or a header.
 */
export function firstServedTier(...values: readonly unknown[]): Served {
  for (const value of values) {
    if (typeof value !== 'string') continue
    const name = value.toLowerCase().replace(/^(?:service_tier|traffic_type)_/, '')
    if (name === 'unspecified') continue
    const served = servedTier(TRAFFIC.get(name) ?? name)
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
 * Reads tier and region from the usage of a messages response. Its `priority` means reserved capacity, and
 * `speed` is a separate field.
 */
export function servedByMessages(usage: Readonly<Record<string, unknown>>): Served {
  const { service_tier: stated, speed, inference_geo: geo } = usage
  const tier = speed === 'fast' ? 'fast' : stated === 'priority' ? 'reserved' : servedTier(stated).tier
  const region = regionName(geo)
  if (region === undefined) return tier === undefined ? NOTHING : (KNOWN.get(tier) ?? { tier })
  return { ...(tier !== undefined && { tier }), region }
}

/** Adds tier and region of a response to its usage. */
export function withServed<T extends object>(usage: T, served: Served): T & { readonly served?: Served } {
  return served === NOTHING ? usage : { ...usage, served }
}

/** Members in which requests of the protocols name a tier, in order of preference. */
const REQUESTED = ['speed', 'service_tier', 'serviceTier'] as const

/**
 * Returns the tier that a request names; `speed: fast` is the tier `fast`. Undefined if it names none, or the
 * standard speed.
 */
export function requestedTier(member: (name: string) => unknown): string | undefined {
  for (const name of REQUESTED) {
    const value = member(name)
    const tier = typeof value === 'string' ? tierName(value.replace(/^SERVICE_TIER_/i, '')) : undefined
    if (tier !== undefined && !(name === 'speed' && tier === STANDARD)) return tier
  }
  return undefined
}
