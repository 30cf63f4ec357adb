import type { Channel } from '../domain/records/channel.ts'
import type { UpstreamKey } from './key-ring.ts'

/** What a provider counts. */
export const PROVIDER_COUNTS = ['requests', 'tokens'] as const
export type ProviderCount = (typeof PROVIDER_COUNTS)[number]

/** What a provider stated about one count. Times are in Unix milliseconds. */
export interface StatedCount {
  readonly limit: number | undefined
  readonly remaining: number
  readonly resetsMs: number | undefined
}

/** Forms in which providers state a count: names of the headers, and how the reset is written. */
interface StatedForm {
  readonly count: ProviderCount
  readonly limit: string
  readonly remaining: string
  readonly reset: string
  readonly resetMs: (text: string, nowMs: number) => number | undefined
}

const openai = (count: ProviderCount): StatedForm => ({
  count,
  limit: `x-ratelimit-limit-${count}`,
  remaining: `x-ratelimit-remaining-${count}`,
  reset: `x-ratelimit-reset-${count}`,
  resetMs: (text, nowMs) => {
    const ms = durationMs(text)
    return ms === undefined ? undefined : nowMs + ms
  },
})

const anthropic = (count: ProviderCount, name: string): StatedForm => ({
  count,
  limit: `anthropic-ratelimit-${name}-limit`,
  remaining: `anthropic-ratelimit-${name}-remaining`,
  reset: `anthropic-ratelimit-${name}-reset`,
  resetMs: (text) => dateMs(text),
})

// Of input, output and both together, the one that has the least left counts.
const FORMS: readonly StatedForm[] = [
  openai('requests'),
  openai('tokens'),
  anthropic('requests', 'requests'),
  anthropic('tokens', 'tokens'),
  anthropic('tokens', 'input-tokens'),
  anthropic('tokens', 'output-tokens'),
]

/** Headers of responses in which providers state their limits, in lower case. */
export const PROVIDER_LIMIT_HEADERS: readonly string[] = FORMS.flatMap(({ limit, remaining, reset }) => [
  limit,
  remaining,
  reset,
])

/** What one response states; what cannot be read is left out. */
export interface StatedLimits {
  readonly requests?: StatedCount
  readonly tokens?: StatedCount
}

/** Reads the limits that the headers of a response state. */
export function statedLimits(headers: Readonly<Record<string, string>>, nowMs: number): StatedLimits {
  const stated: { -readonly [Of in ProviderCount]?: StatedCount } = {}
  for (const { count, limit, remaining, reset, resetMs } of FORMS) {
    const left = amountIn(headers[remaining])
    if (left === undefined || left >= (stated[count]?.remaining ?? Number.POSITIVE_INFINITY)) continue
    const end = headers[reset]
    stated[count] = {
      limit: amountIn(headers[limit]),
      remaining: left,
      resetsMs: end === undefined ? undefined : resetMs(end, nowMs),
    }
  }
  return stated
}

function amountIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration in Go's notation, or a number of seconds. */
function durationMs(text: string): number | undefined {
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return Number(text) * 1_000
  if (!/^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h|d))+$/.test(text)) return undefined
  let ms = 0
  for (const [, amount, unit] of text.matchAll(/(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)/g))
    ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0)
  return ms
}

function dateMs(text: string): number | undefined {
  const ms = /^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** The most that a call can take of a limit. */
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
  readonly #kept = new Map<string, KeptLimits>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
  }

  /** Whether a key can take a call, as far as its provider has stated. */
  canTake(channel: Pick<Channel, 'name'>, key: UpstreamKey, model: string, bound: CallBound): boolean {
    if (this.#kept.size === 0) return true
    const kept = this.#kept.get(nameOf(channel, key, model))
    if (!kept) return true
    const needed = { requests: 1, tokens: bound.tokens }
    const nowMs = this.#nowMs()
    return PROVIDER_COUNTS.every((count) => {
      const stated = holding(kept, count, nowMs)
      return !stated || stated.remaining - kept.underWay[count] >= needed[count]
    })
  }

  /** What was stated of a key that still holds, for the model that has the least left; undefined if nothing. */
  ofKey(channel: string, key: string): KeyLimits | undefined {
    let least: KeyLimits | undefined
    for (const one of this.list())
      if (one.channel === channel && one.key === key && (!least || shareLeft(one) < shareLeft(least)))
        least = one
    return least
  }

  /** Yields everything that was stated and still holds. */
  *list(): Iterable<KeyLimits> {
    const nowMs = this.#nowMs()
    for (const kept of this.#kept.values()) {
      const [requests, tokens] = PROVIDER_COUNTS.map((count) => holding(kept, count, nowMs))
      if (!requests && !tokens) continue
      const { channel, key, model } = kept
      yield { channel, key, model, ...(requests && { requests }), ...(tokens && { tokens }) }
    }
  }

  /** Counts a call as under way until the returned function is called, for the first time. */
  begin(
    channel: Pick<Channel, 'name'>,
    key: UpstreamKey,
    model: string,
    { tokens }: CallBound,
  ): (headers?: Readonly<Record<string, string>>) => void {
    const name = nameOf(channel, key, model)
    const known = this.#kept.get(name)
    if (known) add(known.underWay, 1, tokens)
    let isOver = false
    return (headers) => {
      if (isOver) return
      isOver = true
      if (known) add(known.underWay, -1, -tokens)
      if (headers) this.#note({ channel: channel.name, key: key.value, model }, headers)
    }
  }

  /** Yields what is left of the keys of these channels, which are named by their positions from 1. */
  *samples(channels: readonly Pick<Channel, 'name' | 'keys'>[]): Iterable<LabelledAmount> {
    const byName = new Map(channels.map((channel) => [channel.name, channel]))
    for (const { channel, key, model, ...stated } of this.list()) {
      const position = (byName.get(channel)?.keys.indexOf(key) ?? -1) + 1
      if (position === 0) continue
      for (const kind of PROVIDER_COUNTS) {
        const value = stated[kind]?.remaining
        if (value !== undefined) yield { labels: { channel, key: String(position), model, kind }, value }
      }
    }
  }

  #note(of: Pick<KeyLimits, 'channel' | 'key' | 'model'>, headers: Readonly<Record<string, string>>): void {
    const nowMs = this.#nowMs()
    const stated = statedLimits(headers, nowMs)
    if (!stated.requests && !stated.tokens) return
    const name = nameOf({ name: of.channel }, { value: of.key }, of.model)
    const known = this.#kept.get(name)
    if (known) Object.assign(known, { stated, statedMs: nowMs })
    else this.#kept.set(name, { ...of, stated, statedMs: nowMs, underWay: { requests: 0, tokens: 0 } })
    if (this.#kept.size <= MAX_KEPT) return
    for (const oldest of this.#kept.keys()) {
      this.#kept.delete(oldest)
      break
    }
  }
}

/** What was stated of a count, until its reset. */
function holding(kept: KeptLimits, count: ProviderCount, nowMs: number): StatedCount | undefined {
  const stated = kept.stated[count]
  return stated && (stated.resetsMs ?? kept.statedMs + WITHOUT_RESET_MS) > nowMs ? stated : undefined
}

/** The smallest share of a limit that is left; of one whose whole is unknown, everything or nothing. */
function shareLeft(limits: StatedLimits): number {
  const shares = PROVIDER_COUNTS.map((count) => {
    const { limit, remaining } = limits[count] ?? { limit: undefined, remaining: 1 }
    return limit ? remaining / limit : Math.min(1, remaining)
  })
  return Math.min(...shares)
}

function add(underWay: KeptLimits['underWay'], requests: number, tokens: number): void {
  underWay.requests += requests
  underWay.tokens += tokens
}

function nameOf({ name }: Pick<Channel, 'name'>, { value }: UpstreamKey, model: string): string {
  return `${name}\0${value}\0${model}`
}
