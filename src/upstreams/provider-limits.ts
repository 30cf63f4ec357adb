import type { Channel } from '../domain/records/channel.ts'
import type { UpstreamKey } from './key-ring.ts'
import { LowLimits, type ModelKeys } from './low-limits.ts'
import { ShareHistory } from './share-history.ts'
import {
  boundLimitTimes,
  type LowestRemaining,
  lowestRemaining,
  PROVIDER_COUNTS,
  type ProviderLimitKind,
  type StatedLimitCount,
  type StatedLimits,
  statedLimits,
  type HeadWithLimits,
} from './stated-limits.ts'

/** The maximum that a call may use of a provider's rate limit. */
export interface ProviderLimitBound {
  readonly tokens: number
}

/**
 * Milliseconds for which a stated rate limit is valid if the response does not say when the limit is reset.
 */
const WITHOUT_RESET_MS = 60_000
/** Maximum number of pairs of key and model whose limits are stored; beyond it, the oldest is forgotten. */
const MAX_KEPT = 10_000
/** Maximum number of pairs of key and model that the metrics contain. */
const MAX_SAMPLED = 1_000

/** What a provider has stated about the rate limits of an API key for a model, as long as it is valid. */
export interface KeyLimits extends StatedLimits {
  readonly channel: string
  readonly key: string
  readonly model: string
}

/** A number and its labels, for the metrics. */
interface LabelledAmount {
  readonly labels: Readonly<Record<'channel' | 'key' | 'model' | 'kind', string>>
  readonly value: number
}

type KeyedChannel = Pick<Channel, 'name' | 'keys'>

/** What a response has stated about the rate limits of an API key for a model, to be sent to other nodes. */
export interface LimitsForOtherNodes extends Pick<KeyLimits, 'channel' | 'key' | 'model'> {
  readonly stated: StatedLimits
  /** When the provider stated the limits, in Unix milliseconds. */
  readonly statedMs: number
}

interface KeptLimits extends Pick<KeyLimits, 'channel' | 'key' | 'model'> {
  stated: StatedLimits
  /** In Unix milliseconds; 0 if nothing was stated. If it is in the future, the clock was set back, and no time that was stated counts. */
  statedMs: number
  /** Number of calls whose response has not begun yet, and the maximum tokens that they may use. */
  readonly underWay: { requests: number; tokens: number }
}

/**
 * Rate limits that providers have stated for channels' keys, by model. `docs/configuration.md: Limits of
 * providers`.
 */
export class ProviderLimits {
  /** Watches for channels all of whose keys have nearly used up their limits for a model. */
  readonly low: LowLimits
  /** All stored limits, the oldest first. */
  readonly #kept = new Set<KeptLimits>()
  /**
   * Stored limits by channel, key and model. The maps are nested, because a single name made of all three
   * would have to be built and hashed several times per call.
   */
  readonly #byChannel = new Map<string, Map<string, Map<string, KeptLimits>>>()
  readonly #history = new ShareHistory()
  readonly #nowMs: () => number
  /** Called with the limits that responses to this node state; undefined if there are no other nodes. */
  onNoted: ((noted: LimitsForOtherNodes) => void) | undefined

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
    this.low = new LowLimits((of) => this.#shares(of))
  }

  /** Whether a key's limits allow a call. A limit that the provider has not stated allows every call. */
  canTake(
    channel: Pick<Channel, 'name'>,
    key: UpstreamKey,
    model: string,
    bound: ProviderLimitBound,
  ): boolean {
    if (this.#kept.size === 0) return true
    const kept = this.#find(channel.name, key.value, model)
    const nowMs = this.#nowMs()
    if (!kept || kept.statedMs === 0 || kept.statedMs > nowMs) return true
    if ((kept.stated.restsUntilMs ?? 0) > nowMs) return false
    const needed = { requests: 1, tokens: bound.tokens }
    return PROVIDER_COUNTS.every((count) => {
      const stated = holding(kept, count, nowMs)
      return !stated || stated.remaining - kept.underWay[count] >= needed[count]
    })
  }

  /**
   * The valid limits of each of a channel's keys. If a key has limits for several models, those of the model
   * with the smallest share left are returned.
   */
  ofChannel(name: string): ReadonlyMap<string, KeyLimits> {
    const least = new Map<string, KeyLimits>()
    const nowMs = this.#nowMs()
    for (const kept of this.#keptOfChannel(name)) {
      const limits = holdingOf(kept, nowMs)
      const other = limits && least.get(limits.key)
      if (limits && (!other || lowestRemaining(limits).share < lowestRemaining(other).share))
        least.set(limits.key, limits)
    }
    return least
  }

  /**
   * The percentage of a key's limit that was left in each minute of the last hour, for the model of which the
   * smallest share was left. Null if nothing was stated in that minute. The current minute comes last.
   */
  historyOf(channel: string, key: string): readonly (number | null)[] {
    return this.#history.of(historyName(channel, key), this.#nowMs())
  }

  /**
   * Counts a call as running. The returned function ends this: call it with the head of the response, or
   * without an argument if there is no response. Further calls of the function do nothing.
   */
  begin(
    channel: KeyedChannel,
    key: UpstreamKey,
    model: string,
    { tokens }: ProviderLimitBound,
  ): (head?: HeadWithLimits) => void {
    const kept = this.#keptOf(channel.name, key.value, model)
    add(kept, 1, tokens)
    let isOver = false
    return (head) => {
      if (isOver) return
      isOver = true
      add(kept, -1, -tokens)
      if (head) this.#note(channel, kept, head)
      if (kept.statedMs === 0 && kept.underWay.requests === 0) this.#forget(kept)
    }
  }

  /**
   * What is left of the limits of these channels' keys, for the metrics. Keys are named by their position,
   * starting at 1. At most `MAX_SAMPLED` pairs of key and model are included: those with the smallest share
   * left.
   */
  samples(channels: readonly KeyedChannel[]): LabelledAmount[] {
    const nowMs = this.#nowMs()
    const found: { readonly position: number; readonly limits: KeyLimits }[] = []
    for (const { name, keys } of channels)
      for (const kept of this.#keptOfChannel(name)) {
        const position = keys.indexOf(kept.key) + 1
        const limits = position > 0 ? holdingOf(kept, nowMs) : undefined
        if (limits) found.push({ position, limits })
      }
    if (found.length > MAX_SAMPLED)
      found.sort((a, b) => lowestRemaining(a.limits).share - lowestRemaining(b.limits).share)
    return found.slice(0, MAX_SAMPLED).flatMap(({ position, limits }) => {
      const { channel, model } = limits
      return PROVIDER_COUNTS.flatMap((kind) => {
        const stated = limits[kind]
        if (!stated) return []
        return { labels: { channel, key: String(position), model, kind }, value: stated.remaining }
      })
    })
  }

  #note(channel: KeyedChannel, kept: KeptLimits, head: HeadWithLimits): void {
    const nowMs = this.#nowMs()
    const stated = statedLimits(head, nowMs)
    if (!stated.requests && !stated.tokens && stated.restsUntilMs === undefined) return
    this.#keep(channel, kept, stated, nowMs, nowMs, true)
    this.onNoted?.(kept)
  }

  /** Applies the limits that a response to another node has stated, unless later ones are known. */
  apply(channel: KeyedChannel, { key, model, stated, statedMs }: Omit<LimitsForOtherNodes, 'channel'>): void {
    const kept = this.#keptOf(channel.name, key, model)
    const nowMs = this.#nowMs()
    if (statedMs > kept.statedMs || kept.statedMs > nowMs)
      this.#keep(channel, kept, boundLimitTimes(stated, nowMs), Math.min(statedMs, nowMs), nowMs, false)
  }

  /** Yields all stated limits that are still valid, for a node that has just joined. */
  *noted(): Iterable<LimitsForOtherNodes> {
    const nowMs = this.#nowMs()
    for (const kept of this.#kept) if (holdingOf(kept, nowMs)) yield kept
  }

  #keep(
    channel: KeyedChannel,
    kept: KeptLimits,
    stated: StatedLimits,
    statedMs: number,
    nowMs: number,
    isOwn: boolean,
  ): void {
    kept.stated = stated
    kept.statedMs = statedMs
    const limits = holdingOf(kept, nowMs)
    if (!limits) return
    const { share } = lowestRemaining(limits)
    this.#history.note(historyName(channel.name, kept.key), nowMs, share)
    this.low.noted({ name: channel.name, keys: channel.keys, model: kept.model }, share, isOwn)
  }

  #find(channel: string, key: string, model: string): KeptLimits | undefined {
    return this.#byChannel.get(channel)?.get(key)?.get(model)
  }

  *#keptOfChannel(channel: string): Iterable<KeptLimits> {
    for (const byModel of this.#byChannel.get(channel)?.values() ?? []) yield* byModel.values()
  }

  #keptOf(channel: string, key: string, model: string): KeptLimits {
    const known = this.#find(channel, key, model)
    if (known) return known
    const kept = { channel, key, model, stated: {}, statedMs: 0, underWay: { requests: 0, tokens: 0 } }
    this.#kept.add(kept)
    getOrAdd(getOrAdd(this.#byChannel, channel), key).set(model, kept)
    if (this.#kept.size > MAX_KEPT)
      for (const oldest of this.#kept) {
        this.#forget(oldest)
        break
      }
    return kept
  }

  #forget(kept: KeptLimits): void {
    const { channel, key, model } = kept
    // These limits may have been forgotten while a call was running, and replaced by others under the same
    // key. The others must stay.
    if (!this.#kept.delete(kept)) return
    const byKey = this.#byChannel.get(channel)
    const byModel = byKey?.get(key)
    byModel?.delete(model)
    if (byModel?.size === 0) byKey?.delete(key)
    if (byKey?.size === 0) this.#byChannel.delete(channel)
  }

  /**
   * For each key of a channel, which of its limits for a model (requests or tokens) has the smallest share
   * left; undefined for a key whose limits are unknown.
   */
  #shares({ name, keys, model }: ModelKeys): (LowestRemaining | undefined)[] {
    const nowMs = this.#nowMs()
    return (keys.length === 0 ? [''] : keys).map((key) => {
      const kept = this.#find(name, key, model)
      const limits = kept && holdingOf(kept, nowMs)
      return limits && lowestRemaining(limits)
    })
  }
}

/** What was stated about a limit (requests or tokens); undefined if the limit has been reset since. */
function holding(kept: KeptLimits, count: ProviderLimitKind, nowMs: number): StatedLimitCount | undefined {
  const stated = kept.stated[count]
  return stated && (stated.resetsMs ?? kept.statedMs + WITHOUT_RESET_MS) > nowMs ? stated : undefined
}

/**
 * What was stated about a key's limits for a model, as long as it is valid; undefined if nothing is valid.
 */
function holdingOf(kept: KeptLimits, nowMs: number): KeyLimits | undefined {
  if (kept.statedMs > nowMs) return undefined
  const requests = holding(kept, 'requests', nowMs)
  const tokens = holding(kept, 'tokens', nowMs)
  const { restsUntilMs = 0 } = kept.stated
  const rests = restsUntilMs > nowMs
  if (!requests && !tokens && !rests) return undefined
  const { channel, key, model } = kept
  const limits: { -readonly [Of in keyof KeyLimits]: KeyLimits[Of] } = { channel, key, model }
  if (requests) limits.requests = requests
  if (tokens) limits.tokens = tokens
  if (rests) limits.restsUntilMs = restsUntilMs
  return limits
}

function add({ underWay }: KeptLimits, requests: number, tokens: number): void {
  underWay.requests += requests
  underWay.tokens += tokens
}

function historyName(channel: string, key: string): string {
  return `${channel}\0${key}`
}

function getOrAdd<Value>(maps: Map<string, Map<string, Value>>, name: string): Map<string, Value> {
  const known = maps.get(name)
  if (known) return known
  const added = new Map<string, Value>()
  maps.set(name, added)
  return added
}
