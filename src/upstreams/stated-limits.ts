import { MAX_RETRY_AFTER_MS, RETRY_AFTER_MS_HEADER, requestedPauseMs } from './retry-after.ts'

/** The units in which providers limit the rate of calls. */
export const PROVIDER_COUNTS = ['requests', 'tokens'] as const
export type ProviderLimitKind = (typeof PROVIDER_COUNTS)[number]

/** What a provider has stated about one of its rate limits. `resetsMs` is in Unix milliseconds. */
export interface StatedLimitCount {
  readonly limit: number | undefined
  readonly remaining: number
  readonly resetsMs: number | undefined
}

/**
 * The names of the headers in which a provider states a limit, and how to read the time of the limit's reset.
 */
interface StatedForm {
  readonly count: ProviderLimitKind
  readonly limit: string
  readonly remaining: string
  readonly reset: string
  readonly resetMs: (text: string, nowMs: number) => number | undefined
}

const openai = (count: ProviderLimitKind): StatedForm => ({
  count,
  limit: `x-ratelimit-limit-${count}`,
  remaining: `x-ratelimit-remaining-${count}`,
  reset: `x-ratelimit-reset-${count}`,
  resetMs: (text, nowMs) => {
    const ms = durationMs(text)
    return ms === undefined ? undefined : nowMs + ms
  },
})

const anthropic = (count: ProviderLimitKind, name: string): StatedForm => ({
  count,
  limit: `anthropic-ratelimit-${name}-limit`,
  remaining: `anthropic-ratelimit-${name}-remaining`,
  reset: `anthropic-ratelimit-${name}-reset`,
  resetMs: (text) => dateMs(text),
})

// A provider may state limits for input tokens, output tokens and all tokens. The limit with the fewest
// tokens left counts.
const FORMS: readonly StatedForm[] = [
  openai('requests'),
  openai('tokens'),
  anthropic('requests', 'requests'),
  anthropic('tokens', 'tokens'),
  anthropic('tokens', 'input-tokens'),
  anthropic('tokens', 'output-tokens'),
]

/** Response headers in which providers state their limits, in lower case, in addition to `retry-after`. */
export const PROVIDER_LIMIT_HEADERS: readonly string[] = [
  ...FORMS.flatMap(({ limit, remaining, reset }) => [limit, remaining, reset]),
  RETRY_AFTER_MS_HEADER,
]

/** The rate limits that one response states. Invalid values are left out. */
export interface StatedLimits {
  readonly requests?: StatedLimitCount
  readonly tokens?: StatedLimitCount
  /** End of the pause that the provider demands for the key, in Unix milliseconds. */
  readonly restsUntilMs?: number
}

/** The parts of a response in which a provider may state limits. */
export interface HeadWithLimits {
  readonly retryAfter: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** Reads the rate limits that a response states. */
export function statedLimits(head: HeadWithLimits, nowMs: number): StatedLimits {
  const { headers } = head
  const stated: { -readonly [Of in keyof StatedLimits]: StatedLimits[Of] } = {}
  const pauseMs = requestedPauseMs(head, nowMs)
  if (pauseMs !== undefined) stated.restsUntilMs = nowMs + pauseMs
  for (const { count, limit, remaining, reset, resetMs } of FORMS) {
    const left = amountIn(headers[remaining])
    if (left === undefined || left >= (stated[count]?.remaining ?? Number.POSITIVE_INFINITY)) continue
    const end = headers[reset]
    stated[count] = {
      limit: amountIn(headers[limit]),
      remaining: left,
      resetsMs: end === undefined ? undefined : boundedReset(resetMs(end, nowMs), nowMs),
    }
  }
  return stated
}

/**
 * Milliseconds until the limit that a 429 has met is reset, as its headers state it: the one of which the
 * smallest share is left. Undefined if no time is stated.
 */
export function exhaustedLimitMs(head: HeadWithLimits, nowMs: number): number | undefined {
  const { resetsMs } = lowestRemaining(statedLimits(head, nowMs))
  return resetsMs === undefined || resetsMs <= nowMs ? undefined : resetsMs - nowMs
}

/**
 * Returns limits that another node has read, with their times cut to the maxima that also apply to limits
 * read on this node.
 */
export function boundLimitTimes(
  { requests, tokens, restsUntilMs }: StatedLimits,
  nowMs: number,
): StatedLimits {
  const bounded = (stated: StatedLimitCount): StatedLimitCount => ({
    ...stated,
    resetsMs: boundedReset(stated.resetsMs, nowMs),
  })
  return {
    ...(requests && { requests: bounded(requests) }),
    ...(tokens && { tokens: bounded(tokens) }),
    ...(restsUntilMs !== undefined && { restsUntilMs: Math.min(restsUntilMs, nowMs + MAX_RETRY_AFTER_MS) }),
  }
}

function boundedReset(ms: number | undefined, nowMs: number): number | undefined {
  return ms === undefined ? undefined : Math.min(ms, nowMs + MAX_RESET_MS)
}

function amountIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** Maximum time until a limit is reset, in milliseconds. A later reset is set to this time. */
const MAX_RESET_MS = 31 * 86_400_000

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Matches one part of a duration in Go's notation (`6m`), or a number of seconds. */
const DURATION_PART = /(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d|$)/y

/**
 * Converts a duration in Go's notation (`6m0s`), or a number of seconds, to milliseconds; undefined if it is
 * invalid.
 */
function durationMs(text: string): number | undefined {
  let ms = 0
  DURATION_PART.lastIndex = 0
  while (DURATION_PART.lastIndex < text.length) {
    const isFirst = DURATION_PART.lastIndex === 0
    const part = DURATION_PART.exec(text)
    const unit = part?.[2] || (isFirst ? 's' : '')
    if (!part || unit === '') return undefined
    ms += Number(part[1]) * (UNIT_MS[unit] ?? 0)
  }
  return text === '' ? undefined : ms
}

function dateMs(text: string): number | undefined {
  const ms = /^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** The limit (on requests or on tokens) of which the smallest share is left. */
export interface LowestRemaining {
  /**
   * Share of the limit that is left, from 0 to 1. If the size of the limit is unknown: 0 if nothing is left,
   * otherwise 1.
   */
  readonly share: number
  readonly kind: ProviderLimitKind
  readonly remaining: number
  /** When the limit is reset, in Unix milliseconds; undefined if unknown. */
  readonly resetsMs: number | undefined
}

/**
 * Finds the limit (on requests or on tokens) of which the smallest share is left. During a pause that the
 * provider demands, nothing is left.
 */
export function lowestRemaining(limits: StatedLimits): LowestRemaining {
  const { restsUntilMs } = limits
  let least: LowestRemaining = { share: 1, kind: 'requests', remaining: 0, resetsMs: undefined }
  if (restsUntilMs !== undefined) least = { ...least, share: 0, resetsMs: restsUntilMs }
  for (const kind of PROVIDER_COUNTS) {
    const stated = limits[kind]
    if (!stated) continue
    const { limit, remaining, resetsMs } = stated
    const share = Math.min(1, limit ? remaining / limit : remaining)
    if (share < least.share) least = { share, kind, remaining, resetsMs }
  }
  return least
}
