import {
  firstStatedTier,
  regionName,
  requestedTier,
  type StatedService,
  STANDARD_TIER_NAME,
  tierName,
} from '@sluice/wire/service-tier'
import {
  CACHE_WRITE_FIELDS,
  type CacheWriteLifetime,
  type ReportedUsage,
  withCacheWriteLifetime,
} from '@sluice/wire/reported-usage'
import { choosesTierByProject, mustNameStandardTier } from '@sluice/wire/upstream-settings'
import { asRecord, parseRecord } from '@sluice/wire/json/record'
import type { ChargeRate, RequestedTierAndRegion } from '../domain/price.ts'
import type { Channel } from '../domain/records/channel.ts'
import { type Endpoint, ENDPOINTS } from '../domain/endpoints.ts'
import { vendorServiceOfChannel } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import { BATCH_TIER_NAME, type ServiceRate, serviceRate } from '../domain/service-rate.ts'
import { mayNameTier } from '../upstreams/channel-tier.ts'
import { BEDROCK_TIER_HEADER, VERTEX_TIER_HEADER } from '../upstreams/tier-headers.ts'
import type { ChannelPlan, ParsedRequest, Plan, RequestedService, AttemptTarget } from './request-stages.ts'
import type { RunningCall } from './running-call.ts'

/**
 * Headers in which providers state the service tier, and whether the header takes precedence over the body.
 */
const TIER_HEADERS = [
  { name: VERTEX_TIER_HEADER, isFirst: false },
  // On Bedrock, the body comes from the model's vendor, whose tiers differ from Bedrock's, so the header
  // decides.
  { name: BEDROCK_TIER_HEADER, isFirst: true },
] as const

export interface StatedServiceOfHead {
  readonly served: StatedService
  /** Whether the header takes precedence over the tier in the body. */
  readonly isFirst: boolean
}

/** Reads the service tier from the head of a response; undefined if it states none. */
export function statedServiceOfHead(
  headers: Readonly<Record<string, string>>,
): StatedServiceOfHead | undefined {
  for (const { name, isFirst } of TIER_HEADERS) {
    const value = headers[name]
    if (value !== undefined) return { served: firstStatedTier(value), isFirst }
  }
  return undefined
}

/** Combines the tier and region that the head of a response states with those in its body. */
export function statedServiceOfResponse(
  head: StatedServiceOfHead | undefined,
  body: StatedService | undefined,
): StatedService | undefined {
  if (!head) return body
  return head.isFirst ? { ...body, ...head.served } : { ...head.served, ...body }
}

/** JSON members of request bodies that name a service tier. */
const TIER_MEMBERS: readonly string[] = ['speed', 'service_tier', 'serviceTier']
const REGION_MEMBERS: readonly string[] = ['inference_geo']

type Sender = Pick<Channel, 'allow' | 'override' | 'pass_through' | 'service_tier' | 'base_url'>

/** What the client wants, and the JSON members that are left out of the request to the channel. */
interface SentService extends RequestedService {
  readonly dropped?: readonly string[]
}

/** A service tier or region, which a request may name and a channel may change. */
interface RequestedTierOrRegion {
  readonly members: readonly string[]
  /** Reads the tier or region from the JSON members of a request. */
  readonly read: (member: (name: string) => unknown) => string | undefined
  readonly requested: string | undefined
  readonly isAllowed: boolean
  /** What the channel's configuration sends in place of the client's value. */
  readonly own?: string | undefined
  /** What the gateway sends if the channel has no value of its own and the client's value is not sent. */
  readonly usual?: string | undefined
}

/** The tier or region in the request that is sent to the channel; undefined if the request names none. */
function sentValue(
  { override, pass_through: isOpen }: Sender,
  dropped: readonly string[],
  passThrough: boolean,
  { members, read, requested, isAllowed, own, usual }: RequestedTierOrRegion,
): string | undefined {
  const isChanged = override.set.size + override.default.size + override.remove.length > 0
  const set = isChanged ? read(textsOf(override.set)) : undefined
  if (set !== undefined) return set
  if (own !== undefined) return own
  const has = (names: readonly string[]): boolean => members.some((name) => names.includes(name))
  if (isChanged && has(override.remove)) return undefined
  if (requested !== undefined && (passThrough || isOpen || isAllowed) && !has(dropped)) return requested
  return usual ?? (isChanged ? read(textsOf(override.default)) : undefined)
}

/**
 * Returns a function that reads JSON members from a channel's `override` setting. The tier of the Converse
 * API is an object, of which the `type` is returned.
 */
function textsOf(texts: ReadonlyMap<string, string>): (name: string) => unknown {
  return (name) => {
    const text = texts.get(name)
    if (text === undefined) return undefined
    const value: unknown = JSON.parse(text)
    return asRecord(value)?.['type'] ?? value
  }
}

/**
 * The tier in the request that is sent to a channel: that of the channel's `override`, otherwise the
 * channel's own, otherwise the client's if the channel allows it. `auto` leaves the choice to the provider;
 * undefined if the request names no tier.
 */
export function sentTier(
  channel: Sender,
  { serviceTier: requested, dropped = [], leavesTierOpen }: SentService,
  passThrough: boolean,
): string | undefined {
  const { allow, service_tier: own, pass_through: isOpen } = channel
  const isStandard = !(passThrough || isOpen || leavesTierOpen) && mustNameStandardTier(channel)
  return sentValue(channel, dropped, passThrough, {
    members: TIER_MEMBERS,
    read: requestedTier,
    requested,
    isAllowed: allow.has('service_tier') || (requested === 'fast' && allow.has('speed')),
    own: own === null ? undefined : tierName(own),
    usual: isStandard ? STANDARD_TIER_NAME : undefined,
  })
}

/** The region in the request that is sent to a channel; undefined if the request names none. */
function sentRegion(
  channel: Sender,
  { region: requested, dropped = [] }: SentService,
  passThrough: boolean,
): string | undefined {
  return sentValue(channel, dropped, passThrough, {
    members: REGION_MEMBERS,
    read: (member) => regionName(member('inference_geo')),
    requested,
    isAllowed: channel.allow.has('inference_geo'),
  })
}

/**
 * Whether the provider chooses the tier by its project settings, because the request that was sent names no
 * tier or `auto`.
 */
export function providerChoosesTier(
  { base_url }: Pick<Channel, 'base_url'>,
  sent: string | undefined,
): boolean {
  return (sent === undefined || sent === 'auto') && choosesTierByProject(base_url)
}

/**
 * The tier by which a response is charged: the tier that it states, otherwise the tier in the request that
 * was sent. `isGuessed` is set if the provider chose the tier but did not state it.
 */
export function chargedTier(
  channel: Sender,
  requested: SentService,
  passThrough: boolean,
  stated: string | undefined,
): { readonly tier: string; readonly isGuessed: boolean } {
  if (stated !== undefined) return { tier: stated, isGuessed: false }
  const sent = sentTier(channel, requested, passThrough)
  return {
    tier: sent === undefined || sent === 'auto' ? STANDARD_TIER_NAME : sent,
    isGuessed: providerChoosesTier(channel, sent),
  }
}

/** Tiers that a result out of a provider's batch may state; all others are the tier `batch`. */
const TIERS_BESIDE_BATCH: ReadonlySet<string> = new Set(['fast', 'ultrafast'])

/** The tier of a result out of a provider's batch. */
function batchTier(stated: string | undefined): string {
  return stated !== undefined && TIERS_BESIDE_BATCH.has(stated) ? stated : BATCH_TIER_NAME
}

/** The request as a line of a provider's batch. */
export function asLineOfBatch(request: ParsedRequest): ParsedRequest {
  return {
    ...request,
    requested: { ...request.requested, inBatch: true },
    ...(request.forModel && { forModel: (name) => asLineOfBatch(request.forModel?.(name) ?? request) }),
  }
}

/** The prices by which a call is charged, and whether they are incomplete. */
export interface CallRate extends ServiceRate {
  readonly isIncomplete: boolean
}

/**
 * The prices for a response, by the tier and region that it states, otherwise by those in the request that
 * was sent.
 */
export function rateOfStatedService(
  call: Pick<RunningCall, 'plan'>,
  target: AttemptTarget,
  stated: StatedService | undefined,
): CallRate {
  const service = serviceToCharge(call, target, stated)
  const { isGuessed } = service
  const served = serviceRate(call.plan.rate, target.channel, target.request.upstreamModel, service)
  return { ...served, isIncomplete: served.isUnpriced || isGuessed }
}

/**
 * The tier and region by which a call is charged: those that the response states, otherwise those in the
 * request that was sent.
 */
export function serviceToCharge(
  {
    plan: {
      settings,
      request: { requested: asked = NOTHING },
    },
  }: Pick<RunningCall, 'plan'>,
  { channel, request }: AttemptTarget,
  stated: StatedService = {},
): RequestedTierAndRegion {
  const requested = asked.serviceTier ?? ''
  const { tier, region } = stated
  const { pass_through: passThrough } = settings.options
  const service = { ...asked, dropped: request.dropped }
  if (asked.inBatch)
    return {
      requested,
      tier: batchTier(tier),
      region: region ?? sentRegion(channel, service, passThrough),
      isGuessed: false,
    }
  if (!mayNameTier(request.path))
    return { requested, tier: tier ?? STANDARD_TIER_NAME, region, isGuessed: false }
  return {
    requested,
    ...chargedTier(channel, service, passThrough, tier),
    region: region ?? sentRegion(channel, service, passThrough),
  }
}

const NOTHING: RequestedService = {}

/**
 * The price of the prompt for a call that ends before the response states a tier: by the tier in the request
 * to the first channel.
 */
export function rateOfRequestedService({ dialect, rate, settings, request, channels }: Plan): ChargeRate {
  const [first] = channels
  if (!first || rate.free) return rate
  const { channel, tools } = first
  const isInBatch = request.requested?.inBatch === true
  if (!isInBatch && !ENDPOINTS[dialect.endpoint].hasTiers) return rate
  const sent = isInBatch
    ? BATCH_TIER_NAME
    : sentTier(channel, request.requested ?? NOTHING, settings.options.pass_through)
  if (sent === undefined || sent === 'auto' || sent === STANDARD_TIER_NAME) return rate
  const model = tools?.model ?? channel.model_mapping.get(request.model) ?? request.model
  return serviceRate(rate, channel, model, { tier: sent }).rate
}

/**
 * The tiers and the region in which a channel may serve a request. The amount reserved for the call must
 * cover the most expensive tier.
 */
export function possibleTiersAndRegion(
  { channel }: Pick<ChannelPlan, 'channel'>,
  endpoint: Endpoint,
  requested: RequestedService | undefined,
  passThrough: boolean,
): { readonly tiers: readonly string[]; readonly region: string | undefined } {
  if (requested?.inBatch) return { tiers: IN_BATCH, region: sentRegion(channel, requested, passThrough) }
  if (!ENDPOINTS[endpoint].hasTiers) return { tiers: PLAIN, region: undefined }
  const sent = sentTier(channel, requested ?? NOTHING, passThrough)
  return { tiers: tiersFor(channel, sent), region: sentRegion(channel, requested ?? NOTHING, passThrough) }
}

function tiersFor(channel: Channel, sent: string | undefined): readonly string[] {
  if (providerChoosesTier(channel, sent)) return CHOSEN
  return sent === undefined || sent === 'auto' || sent === STANDARD_TIER_NAME
    ? PLAIN
    : [STANDARD_TIER_NAME, sent]
}

const PLAIN: readonly string[] = [STANDARD_TIER_NAME]
const IN_BATCH: readonly string[] = [BATCH_TIER_NAME]
const CHOSEN: readonly string[] = [STANDARD_TIER_NAME, 'fast']

type SentRequest = Pick<AttemptTarget, 'channel'> & {
  readonly request: Pick<AttemptTarget['request'], 'body'>
}

/** Assigns a lifetime to tokens that were written to the provider's cache, if the provider reported none. */
export function withCacheLifetimeOfSentRequest(reported: ReportedUsage, sent: SentRequest): ReportedUsage {
  if (!reported.lifetimeIsUnknown) return reported
  return withCacheWriteLifetime(reported, cacheLifetimeOfSentRequest(sent))
}

/** The longest cache lifetime in the request that was sent, otherwise the provider's default. */
export function cacheLifetimeOfSentRequest({ channel, request: { body } }: SentRequest): CacheWriteLifetime {
  const named = Buffer.isBuffer(body) && body.includes('"ttl"') ? longestLifetime(body) : undefined
  return named ?? (vendorServiceOfChannel(channel) === OPENAI ? '30m' : '5m')
}

/**
 * JSON members of a request that mark the content to be cached by the provider; `ttl` in them is its
 * lifetime.
 */
const MARKS = ['cache_control', 'prompt_cache_breakpoint', 'prompt_cache_options', 'cachePoint'] as const
const LIFETIMES = Object.keys(CACHE_WRITE_FIELDS) as readonly CacheWriteLifetime[]
/**
 * Maximum depth to which a request is searched for cache marks. It reaches content blocks inside tool
 * results.
 */
const MAX_LEVELS = 8

function longestLifetime(body: Buffer): CacheWriteLifetime | undefined {
  let longest = -1
  const visit = (value: unknown, levels: number): void => {
    if (levels === 0 || typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) return value.forEach((one) => visit(one, levels - 1))
    const record = value as Readonly<Record<string, unknown>>
    for (const name of MARKS) {
      const ttl = asRecord(record[name])?.['ttl']
      longest = Math.max(longest, LIFETIMES.indexOf(ttl as CacheWriteLifetime))
    }
    for (const name of HOLDERS) if (record[name] !== undefined) visit(record[name], levels - 1)
  }
  visit(parseRecord(body.toString()), MAX_LEVELS)
  return LIFETIMES[longest]
}

/** JSON members of a request that contain blocks with cache marks. */
const HOLDERS = ['messages', 'system', 'tools', 'input', 'content', 'output'] as const
