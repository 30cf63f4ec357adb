import { type Served, firstServedTier, STANDARD, tierName } from '@sluice/wire/service-tier'
import {
  CACHE_LIFETIMES,
  type CacheLifetime,
  type ReportedUsage,
  withLifetime,
} from '@sluice/wire/reported-usage'
import { choosesTierByProject } from '@sluice/wire/upstream-settings'
import { asRecord, parseRecord } from '@sluice/wire/json/record'
import type { Channel } from '../domain/records/channel.ts'
import { type Endpoint, ENDPOINTS } from '../domain/endpoints.ts'
import { serviceVendor } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import { type ServedRate, servedRate } from '../domain/served-rate.ts'
import { BEDROCK_TIER_HEADER, VERTEX_TIER_HEADER } from '../upstreams/tier-headers.ts'
import type { ChannelPlan, ParsedRequest, Target } from './request-stages.ts'
import type { Call } from './call.ts'

/** Headers in which Vertex and Bedrock state the tier. */
const TIER_HEADERS = [VERTEX_TIER_HEADER, BEDROCK_TIER_HEADER] as const

/** What the head of a response states about the tier; undefined if nothing. */
export function servedByHead(headers: Readonly<Record<string, string>>): Served | undefined {
  for (const name of TIER_HEADERS) {
    const value = headers[name]
    if (value !== undefined) return firstServedTier(value)
  }
  return undefined
}

/** Members that name a tier in the bodies of requests to upstreams. */
const MEMBERS = ['service_tier', 'serviceTier'] as const

/**
 * The tier that a request as sent names: that of the client if the channel allows it, unless the channel
 * changes it. `auto` leaves it to the provider; undefined if the request states none.
 */
export function sentTier(
  { allow, override, pass_through: isOpen }: Pick<Channel, 'allow' | 'override' | 'pass_through'>,
  requested: string | undefined,
  passThrough: boolean,
): string | undefined {
  for (const member of MEMBERS) {
    const text = override.set.get(member)
    const set: unknown = text === undefined ? undefined : JSON.parse(text)
    if (typeof set === 'string') return tierName(set)
  }
  if (passThrough || isOpen || allow.has('service_tier')) return requested
  return requested === 'fast' && allow.has('speed') ? requested : undefined
}

/** Whether a provider chooses the tier of a request that names none, by the settings of its project. */
export function choosesTier(
  { allow, base_url, pass_through: isOpen }: Pick<Channel, 'allow' | 'base_url' | 'pass_through'>,
  endpoint: Endpoint,
  sent: string | undefined,
  passThrough: boolean,
): boolean {
  if (!ENDPOINTS[endpoint].hasTiers) return false
  if (sent !== undefined && sent !== 'auto') return false
  if (!(passThrough || isOpen || allow.has('service_tier'))) return false
  return choosesTierByProject(base_url)
}

/**
 * The tier at which an answer is charged: the one that it states, otherwise the one that was sent. It is a guess
 * where the provider chose and did not state it.
 */
export function chargedTier(
  channel: Pick<Channel, 'allow' | 'override' | 'pass_through' | 'base_url'>,
  endpoint: Endpoint,
  requested: string | undefined,
  passThrough: boolean,
  stated: string | undefined,
): { readonly tier: string; readonly isGuessed: boolean } {
  if (stated !== undefined) return { tier: stated, isGuessed: false }
  const sent = sentTier(channel, requested, passThrough)
  return {
    tier: sent === undefined || sent === 'auto' ? STANDARD : sent,
    isGuessed: choosesTier(channel, endpoint, sent, passThrough),
  }
}

/** How a call is charged by what its answer states, and whether its price is incomplete. */
export interface ServedCall extends ServedRate {
  readonly isIncomplete: boolean
}

/** The rate of an answer: of the tier that it states, otherwise of the one that was sent. */
export function servedAt(call: Call, { channel, request }: Target, stated: Served | undefined): ServedCall {
  const { rate, settings, request: asked, dialect } = call.plan
  const { tier, isGuessed } = chargedTier(
    channel,
    dialect.endpoint,
    asked.serviceTier,
    settings.options.pass_through,
    stated?.tier,
  )
  const region = stated?.region
  const served = servedRate(rate, channel, request.upstreamModel, {
    tier,
    ...(region !== undefined && { region }),
  })
  if (served.isUnpriced)
    call.services.unpriced.note({
      model: asked.model,
      channel: channel.name,
      tier: served.tier,
    })
  return { ...served, isIncomplete: served.isUnpriced || isGuessed }
}

/** The tiers in which a channel may serve a request; the hold covers the dearest of them. */
export function possibleTiers(
  { channel }: Pick<ChannelPlan, 'channel'>,
  endpoint: Endpoint,
  { serviceTier: requested }: Pick<ParsedRequest, 'serviceTier'>,
  passThrough: boolean,
): readonly string[] {
  const sent = sentTier(channel, requested, passThrough)
  if (choosesTier(channel, endpoint, sent, passThrough)) return CHOSEN
  return sent === undefined || sent === 'auto' || sent === STANDARD ? PLAIN : [STANDARD, sent]
}

const PLAIN: readonly string[] = [STANDARD]
const CHOSEN: readonly string[] = [STANDARD, 'fast']

/**
 * Counts tokens written to a cache for an unknown lifetime as written for the longest one that the request as
 * sent names, otherwise for that of the provider.
 */
export function withSentLifetime(
  reported: ReportedUsage,
  { channel, request }: Pick<Target, 'channel'> & { readonly request: Pick<Target['request'], 'body'> },
): ReportedUsage {
  if (!reported.lifetimeIsUnknown) return reported
  const { body } = request
  const named = Buffer.isBuffer(body) && body.includes('"ttl"') ? longestLifetime(body) : undefined
  return withLifetime(reported, named ?? (serviceVendor(channel) === OPENAI ? '30m' : '5m'))
}

/** Members of a request that have the lifetime of a cache. */
const MARKS = ['cache_control', 'prompt_cache_breakpoint', 'prompt_cache_options', 'cachePoint'] as const
const LIFETIMES = Object.keys(CACHE_LIFETIMES) as readonly CacheLifetime[]
/** Levels of a request that may have marks: content blocks inside tool results. */
const MAX_LEVELS = 8

function longestLifetime(body: Buffer): CacheLifetime | undefined {
  let longest = -1
  const visit = (value: unknown, levels: number): void => {
    if (levels === 0 || typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) return value.forEach((one) => visit(one, levels - 1))
    const record = value as Readonly<Record<string, unknown>>
    for (const name of MARKS) {
      const ttl = asRecord(record[name])?.['ttl']
      longest = Math.max(longest, LIFETIMES.indexOf(ttl as CacheLifetime))
    }
    for (const name of HOLDERS) if (record[name] !== undefined) visit(record[name], levels - 1)
  }
  visit(parseRecord(body.toString()), MAX_LEVELS)
  return LIFETIMES[longest]
}

/** Members that hold blocks with marks. */
const HOLDERS = ['messages', 'system', 'tools', 'input', 'content', 'output'] as const
