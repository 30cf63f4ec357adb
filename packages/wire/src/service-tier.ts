/** The service tier in which the model's prices apply unchanged. */
export const STANDARD = 'standard'

/** The service tier for capacity that is reserved and paid in advance. */
export const PROVISIONED = 'provisioned'

/** Beta feature that some models need for `speed: fast`. */
export const FAST_MODE_BETA = 'fast-mode-2026-02-01'

/** Standard names for tiers with other names. Any other tier keeps its name, in lower case. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['priority', 'fast'],
  ['default', STANDARD],
  ['on_demand', STANDARD],
  ['standard_only', STANDARD],
  ['scale', 'reserved'],
])

const NAME = /^[a-z][a-z0-9_-]{0,31}$/

/**
 * The name of a service tier in log rows, prices and alerts; undefined if the text cannot be a name. `auto`
 * is kept, for requests that leave the choice to the provider.
 */
export function tierName(given: string): string | undefined {
  const lower = given.toLowerCase()
  if (!NAME.test(lower)) return undefined
  return OTHER_NAMES.get(lower) ?? lower
}

/** What an answer states about tier and region of the service. */
export interface Served {
  /** The tier of service; absent if none is stated. */
  readonly tier?: string
  /** The region in which the provider processed the request; absent if it is not stated. */
  readonly region?: string
}

const NOTHING: Served = {}
/** The objects for the most frequent tiers, which are shared to save memory. */
const KNOWN = new Map<string, Served>([[STANDARD, { tier: STANDARD }]])

/** The tier of an answer of chat, responses or Converse; `auto` states nothing. */
export function servedTier(value: unknown): Served {
  const tier = typeof value === 'string' ? tierName(value) : undefined
  if (tier === undefined || tier === 'auto') return NOTHING
  return KNOWN.get(tier) ?? { tier }
}

/** The tier of an answer, as an object to spread into a reply; empty if the answer states none. */
export function servedMember(value: unknown): { readonly served?: Served } {
  return withServed({}, servedTier(value))
}

/** Returns the latest statement of a stream; an event that states nothing keeps the previous one. */
export function laterServed(before: Served | undefined, later: Served): Served | undefined {
  return later === NOTHING ? before : { ...before, ...later }
}

/** Google's traffic types that differ from the names of their tiers. */
const TRAFFIC: ReadonlyMap<string, string> = new Map([
  ['on_demand_priority', 'fast'],
  ['on_demand_flex', 'flex'],
  ['on_demand_offpeak', 'offpeak'],
  ['provisioned_throughput', PROVISIONED],
])

/** The tier in the first value that states one: Google's `serviceTier` or `trafficType`, or a header. */
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

/** The name of a region in log rows and prices; undefined if the value cannot be a name. */
export function regionName(value: unknown): string | undefined {
  return typeof value === 'string' && REGION.test(value) ? value : undefined
}

const REGION = /^[a-z][a-z0-9_-]{0,39}$/

/**
 * Reads tier and region from the usage of a messages answer. `priority` in it means reserved capacity;
 * `speed` is stated separately.
 */
export function servedByMessages(usage: Readonly<Record<string, unknown>>): Served {
  const { service_tier: stated, speed, inference_geo: geo } = usage
  const tier = speed === 'fast' ? 'fast' : stated === 'priority' ? 'reserved' : servedTier(stated).tier
  const region = regionName(geo)
  if (region === undefined) return tier === undefined ? NOTHING : (KNOWN.get(tier) ?? { tier })
  return { ...(tier !== undefined && { tier }), region }
}

/** Adds what an answer states about the service to its usage. */
export function withServed<T extends object>(usage: T, served: Served): T & { readonly served?: Served } {
  return served === NOTHING ? usage : { ...usage, served }
}

/** Members in which requests name a tier, in the order of preference. */
const REQUESTED = ['speed', 'service_tier', 'serviceTier'] as const

/** The tier that a request names (`fast` for `speed`). Undefined if it names none, or the normal speed. */
export function requestedTier(member: (name: string) => unknown): string | undefined {
  for (const name of REQUESTED) {
    const value = member(name)
    const tier = typeof value === 'string' ? tierName(value.replace(/^SERVICE_TIER_/i, '')) : undefined
    if (tier !== undefined && !(name === 'speed' && tier === STANDARD)) return tier
  }
  return undefined
}
