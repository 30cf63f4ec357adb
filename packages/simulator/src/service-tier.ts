import type { IncomingHttpHeaders } from 'node:http'
import type { CacheUse } from './block-cache.ts'
import type { CachedPrefixLifetime as CacheLifetime } from './cache-rules.ts'
import { directiveMembers } from './directive.ts'
import type { Fields } from './fields.ts'

/** What a `simulate(…)` directive in a request makes the provider state; see the README. */
interface Directive {
  /** The tier that is reported as served, instead of the requested one; `none` for no report at all. */
  readonly tier?: string
  /** The region that is reported. */
  readonly region?: string
  /** Whether Gemini reports the tier in the field `trafficType`. */
  readonly traffic: boolean
  /** Number of tokens of the prompt that are reported as written to a cache, by lifetime. */
  readonly writes: Readonly<Record<Lifetime, number>>
}

type Lifetime = Exclude<CacheLifetime, '24h'>

/** Reads the last `simulate(tier=flex, write_12h=100)` in the texts of a request. */
function directiveIn(body: Fields): Directive {
  const members = directiveMembers(body)
  const tokens = (lifetime: Lifetime): number =>
    Math.trunc(Number(members.get(`write_${lifetime}`) ?? 0)) || 0
  return {
    ...(members.has('tier') && { tier: members.get('tier') ?? '' }),
    ...(members.has('region') && { region: members.get('region') ?? '' }),
    traffic: members.has('traffic'),
    writes: { '5m': tokens('5m'), '30m': tokens('30m'), '1h': tokens('1h'), '12h': tokens('12h') },
  }
}

const OPENAI_TIERS: ReadonlySet<unknown> = new Set(['default', 'flex', 'priority', 'ultrafast', 'scale'])
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['fast', 'priority'],
  ['standard', 'default'],
  ['reserved', 'scale'],
])

/** The tier that responses of chat and responses state: the requested one, else `default`. */
export function openAiTier(body: Fields): string | undefined {
  const { tier } = directiveIn(body)
  if (tier === 'none') return undefined
  if (tier !== undefined) return OTHER_NAMES.get(tier) ?? tier
  const { service_tier: asked } = body
  const named = asked === 'fast' ? 'priority' : asked
  return OPENAI_TIERS.has(named) ? String(named) : 'default'
}

/** The fields about tier, speed and region in the usage of a messages response. */
export function messagesServiceTier(body: Fields): Fields {
  const { tier, region = body.inference_geo } = directiveIn(body)
  const { speed } = body
  const isFast = tier === undefined ? speed === 'fast' : tier === 'fast'
  const stated = tier === 'reserved' ? 'priority' : tier === undefined || isFast ? 'standard' : tier
  return {
    ...(tier !== 'none' && { service_tier: stated }),
    ...((speed !== undefined || isFast) && tier !== 'none' && { speed: isFast ? 'fast' : 'standard' }),
    ...(typeof region === 'string' && { inference_geo: region }),
  }
}

const GOOGLE_TIERS: ReadonlySet<unknown> = new Set(['standard', 'flex', 'priority'])
const TRAFFIC: ReadonlyMap<string, string> = new Map([
  ['standard', 'ON_DEMAND'],
  ['flex', 'ON_DEMAND_FLEX'],
  ['fast', 'ON_DEMAND_PRIORITY'],
  ['priority', 'ON_DEMAND_PRIORITY'],
  ['offpeak', 'ON_DEMAND_OFFPEAK'],
  ['provisioned', 'PROVISIONED_THROUGHPUT'],
])

/** The field about the tier in the usage of a Gemini response: `serviceTier` or `trafficType`. */
export function geminiServiceTier(body: Fields): Fields {
  const { tier, traffic } = directiveIn(body)
  const { serviceTier: asked } = body
  const named = tier ?? (typeof asked === 'string' ? asked.toLowerCase() : undefined)
  if (named === undefined || named === 'none') return traffic ? { trafficType: 'ON_DEMAND' } : {}
  const type = TRAFFIC.get(named)
  if (type !== undefined && (traffic || named === 'offpeak' || named === 'provisioned'))
    return { trafficType: type }
  if (tier !== undefined) return { serviceTier: tier === 'fast' ? 'priority' : tier }
  return { serviceTier: GOOGLE_TIERS.has(named) ? named : 'standard' }
}

/**
 * Header in which requests to Bedrock's `invoke` name a tier, and responses state the one that was served.
 */
export const BEDROCK_HEADER = 'x-amzn-bedrock-service-tier'
const BEDROCK_TIERS: ReadonlySet<unknown> = new Set(['default', 'flex', 'priority', 'reserved'])

/** The tier that Bedrock states: the one in the header or the body of the request, else `default`. */
export function bedrockTier(body: Fields, headers: IncomingHttpHeaders): string | undefined {
  const { tier } = directiveIn(body)
  if (tier === 'none') return undefined
  if (tier !== undefined) return tier === 'reserved' ? tier : (OTHER_NAMES.get(tier) ?? tier)
  const { serviceTier } = body
  const inBody =
    typeof serviceTier === 'object' && serviceTier !== null ? Reflect.get(serviceTier, 'type') : undefined
  const named: unknown = headers[BEDROCK_HEADER] ?? inBody
  return BEDROCK_TIERS.has(named) ? String(named) : 'default'
}

/**
 * Number of tokens that a `simulate(…)` directive declares as written to the cache, by lifetime; together at
 * most `prompt`.
 */
export function requestedCacheWrites(body: Fields, prompt: number): Readonly<Record<Lifetime, number>> {
  let left = prompt
  const { writes } = directiveIn(body)
  const taken = (lifetime: Lifetime): number => {
    const tokens = Math.min(Math.max(writes[lifetime], 0), left)
    left -= tokens
    return tokens
  }
  return { '5m': taken('5m'), '30m': taken('30m'), '1h': taken('1h'), '12h': taken('12h') }
}

/** The usage fields of chat and responses for tokens written to a cache; empty if there are none. */
export function openAiCacheWrites(body: Fields, prompt: number, { read, writes: marked }: CacheUse): Fields {
  const { '30m': short = 0, '12h': long = 0 } = marked
  const asked = requestedCacheWrites(body, prompt - read - short - long)
  const writes = { '30m': asked['30m'] + short, '12h': asked['12h'] + long }
  const written = writes['30m'] + writes['12h']
  if (written === 0) return {}
  return {
    cache_write_tokens: written,
    cache_write_tokens_details: { ttl_30m_tokens: writes['30m'], ttl_12h_tokens: writes['12h'] },
  }
}
