import type { Channel } from '../domain/records/channel.ts'
import type { UpstreamKey } from './key-ring.ts'
import { LowLimits, type ModelKeys } from './low-limits.ts'
import {
  type LeastLeft,
  leastLeft,
  PROVIDER_COUNTS,
  type ProviderCount,
  type StatedCount,
  type StatedLimits,
  statedLimits,
  type StatingHead,
} from './stated-limits.ts'

/** Upper bound on what a call can use of a limit. */
export interface CallBound {
  readonly tokens: number
}

/** How long a statement without a reset is believed. */
const WITHOUT_RESET_MS = 60_000
/** Maximum number of keys and models of which limits are kept; beyond it, the oldest is forgotten. */
const MAX_KEPT = 10_000

/** What was stated of a key and a model, and still holds. */
export interface KeyLimits extends StatedLimits {
  readonly channel: string
  readonly key: string
  readonly model: string
}

/** An amount and its labels in the metrics. */
interface LabelledAmount {
  readonly labels: Readonly<Record<'channel' | 'key' | 'model' | 'kind', string>>
  readonly value: number
}

/** A channel and its keys. */
type KeyedChannel = Pick<Channel, 'name' | 'keys'>

interface KeptLimits extends Pick<KeyLimits, 'channel' | 'key' | 'model'> {
  stated: StatedLimits
  statedMs: number
  /** Calls of which the response has not begun, and their bound in tokens. */
  readonly underWay: { requests: number; tokens: number }
}

/**
 * Limits that providers have stated for the keys of channels, by upstream model. `docs/configuration.md:
 * Limits of providers`.
 */
export class ProviderLimits {
  /** Channels of which all keys have little left of a model. */
  readonly low: LowLimits
  readonly #kept = new Map<string, KeptLimits>()
  readonly #ofChannel = new Map<string, Set<KeptLimits>>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
    this.low = new LowLimits((of) => this.#shares(of))
  }

  /** Whether a key can take a call, as far as its provider has stated. */
  canTake(channel: Pick<Channel, 'name'>, key: UpstreamKey, model: string, bound: CallBound): boolean {
    if (this.#kept.size === 0) return true
    const kept = this.#kept.get(nameOf(channel.name, key.value, model))
    if (!kept) return true
    const nowMs = this.#nowMs()
    if ((kept.stated.restsUntilMs ?? 0) > nowMs) return false
    const needed = { requests: 1, tokens: bound.tokens }
    return PROVIDER_COUNTS.every((count) => {
      const stated = holding(kept, count, nowMs)
      return !stated || stated.remaining - kept.underWay[count] >= needed[count]
    })
  }

  /** What was stated of each key of a channel that still holds, for the model that has the least left. */
  ofChannel(name: string): ReadonlyMap<string, KeyLimits> {
    const least = new Map<string, KeyLimits>()
    const nowMs = this.#nowMs()
    for (const kept of this.#ofChannel.get(name) ?? []) {
      const limits = holdingOf(kept, nowMs)
      const other = limits && least.get(limits.key)
      if (limits && (!other || leastLeft(limits).share < leastLeft(other).share))
        least.set(limits.key, limits)
    }
    return least
  }

  /**
   * Counts a call as under way until the returned function is called, for the first time, with the head of its
   * response if there is one.
   */
  begin(
    channel: KeyedChannel,
    key: UpstreamKey,
    model: string,
    { tokens }: CallBound,
  ): (head?: StatingHead) => void {
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

  /** Yields what is left of the keys of these channels, which are named by their positions from 1. */
  *samples(channels: readonly KeyedChannel[]): Iterable<LabelledAmount> {
    const nowMs = this.#nowMs()
    for (const { name, keys } of channels)
      for (const kept of this.#ofChannel.get(name) ?? []) {
        const position = keys.indexOf(kept.key) + 1
        if (position === 0) continue
        for (const kind of PROVIDER_COUNTS) {
          const labels = { channel: name, key: String(position), model: kept.model, kind }
          const stated = holding(kept, kind, nowMs)
          if (stated) yield { labels, value: stated.remaining }
        }
      }
  }

  #note(channel: KeyedChannel, kept: KeptLimits, head: StatingHead): void {
    const nowMs = this.#nowMs()
    const stated = statedLimits(head, nowMs)
    if (!stated.requests && !stated.tokens && stated.restsUntilMs === undefined) return
    kept.stated = stated
    kept.statedMs = nowMs
    const limits = holdingOf(kept, nowMs)
    if (limits) this.low.noted({ ...channel, model: kept.model }, leastLeft(limits).share)
  }

  #keptOf(channel: string, key: string, model: string): KeptLimits {
    const name = nameOf(channel, key, model)
    const known = this.#kept.get(name)
    if (known) return known
    const kept = { channel, key, model, stated: {}, statedMs: 0, underWay: { requests: 0, tokens: 0 } }
    this.#kept.set(name, kept)
    const ofChannel = this.#ofChannel.get(channel)
    if (ofChannel) ofChannel.add(kept)
    else this.#ofChannel.set(channel, new Set([kept]))
    if (this.#kept.size > MAX_KEPT)
      for (const oldest of this.#kept.values()) {
        this.#forget(oldest)
        break
      }
    return kept
  }

  #forget(kept: KeptLimits): void {
    const { channel, key, model } = kept
    const ofChannel = this.#ofChannel.get(channel)
    // A call that was under way when its limits were forgotten has those that were kept since.
    if (!ofChannel?.delete(kept)) return
    this.#kept.delete(nameOf(channel, key, model))
    if (ofChannel.size === 0) this.#ofChannel.delete(channel)
  }

  /** The least that each key has left of a model; undefined for a key of which nothing is known. */
  #shares({ name, keys, model }: ModelKeys): (LeastLeft | undefined)[] {
    const nowMs = this.#nowMs()
    return (keys.length === 0 ? [''] : keys).map((key) => {
      const kept = this.#kept.get(nameOf(name, key, model))
      const limits = kept && holdingOf(kept, nowMs)
      return limits && leastLeft(limits)
    })
  }
}

/** What was stated of a count, until its reset. */
function holding(kept: KeptLimits, count: ProviderCount, nowMs: number): StatedCount | undefined {
  const stated = kept.stated[count]
  return stated && (stated.resetsMs ?? kept.statedMs + WITHOUT_RESET_MS) > nowMs ? stated : undefined
}

/** What was stated of a key and a model, and still holds; undefined if nothing does. */
function holdingOf(kept: KeptLimits, nowMs: number): KeyLimits | undefined {
  const [requests, tokens] = PROVIDER_COUNTS.map((count) => holding(kept, count, nowMs))
  const { restsUntilMs = 0 } = kept.stated
  if (!requests && !tokens && restsUntilMs <= nowMs) return undefined
  const { channel, key, model } = kept
  return {
    channel,
    key,
    model,
    ...(requests && { requests }),
    ...(tokens && { tokens }),
    ...(restsUntilMs > nowMs && { restsUntilMs }),
  }
}

function add({ underWay }: KeptLimits, requests: number, tokens: number): void {
  underWay.requests += requests
  underWay.tokens += tokens
}

function nameOf(channel: string, key: string, model: string): string {
  return `${channel}\0${key}\0${model}`
}
