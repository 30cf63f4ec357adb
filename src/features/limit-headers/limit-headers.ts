import type { ResponseHeaders } from '@sluice/http1'
import type { ServedProtocol } from '@sluice/wire/protocols'
import type { LimitCountFigures, LimitFigures } from '../../limits/rate-limiter.ts'

/** Returns the headers that state what remains of an API key's limits. `docs/api.md: Limits`. */
type LimitHeaders = (figures: LimitFigures, nowMs: number) => ResponseHeaders

/**
 * Names of the headers for one limit. They are made once, because JavaScript must hash a newly built string
 * at each use.
 */
interface CountNames {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

type NamesOfCounts = Readonly<Record<'requests' | 'tokens', CountNames>>

const OPENAI_NAMES = namesBy((count, what) => `x-ratelimit-${what}-${count}`)
const ANTHROPIC_NAMES = namesBy((count, what) => `anthropic-ratelimit-${count}-${what}`)

const openaiHeaders = headersIn(OPENAI_NAMES, goDuration)
const anthropicHeaders = headersIn(ANTHROPIC_NAMES, (resetMs, nowMs) => rfc3339(nowMs + resetMs))

/**
 * How the limits are stated to the clients of each protocol. Gemini's clients read limits only in the `RetryInfo` of
 * errors.
 */
const FORMS: { readonly [In in ServedProtocol]?: LimitHeaders } = {
  chat: openaiHeaders,
  responses: openaiHeaders,
  rerank: openaiHeaders,
  messages: anthropicHeaders,
}

/** Names of all headers that state limits; pages of other origins may read them. */
export const LIMIT_HEADER_NAMES: readonly string[] = [OPENAI_NAMES, ANTHROPIC_NAMES]
  .flatMap(({ requests, tokens }) => [requests, tokens])
  .flatMap(({ limit, remaining, reset }) => [limit, remaining, reset])
  .toSorted()

/**
 * Returns the function that makes the limit headers for the clients of a protocol; undefined if they read none. Paths that
 * several protocols share (an undefined `protocol`) are OpenAI's.
 */
export function limitHeadersOf(protocol: ServedProtocol | undefined): LimitHeaders | undefined {
  return protocol === undefined ? openaiHeaders : FORMS[protocol]
}

function namesBy(nameOf: (count: string, what: string) => string): NamesOfCounts {
  const namesOf = (count: string): CountNames => ({
    limit: nameOf(count, 'limit'),
    remaining: nameOf(count, 'remaining'),
    reset: nameOf(count, 'reset'),
  })
  return { requests: namesOf('requests'), tokens: namesOf('tokens') }
}

function headersIn(names: NamesOfCounts, resetOf: (resetMs: number, nowMs: number) => string): LimitHeaders {
  return ({ requests, tokens }, nowMs) => {
    const headers: Record<string, string> = {}
    const state = (of: CountNames, { limit, remaining, resetMs }: LimitCountFigures): void => {
      headers[of.limit] = String(limit)
      headers[of.remaining] = String(remaining)
      headers[of.reset] = resetOf(resetMs, nowMs)
    }
    if (requests) state(names.requests, requests)
    if (tokens) state(names.tokens, tokens)
    return headers
  }
}

/** A duration in Go's notation, rounded up: `120ms`, `1s`, `6m0s`, `2h0m0s`. */
export function goDuration(ms: number): string {
  const whole = Math.ceil(ms)
  if (whole > 0 && whole < 1_000) return `${whole}ms`
  const seconds = Math.ceil(whole / 1_000)
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  const shown = `${seconds % 60}s`
  if (hours > 0) return `${hours}h${minutes}m${shown}`
  return minutes > 0 ? `${minutes}m${shown}` : shown
}

/** A Unix time in milliseconds as RFC 3339 text, in whole seconds, rounded up. */
function rfc3339(ms: number): string {
  return new Date(Math.ceil(ms / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}
