import type { ResponseHeaders } from '@sluice/http1'
import type { CountFigures, LimitFigures } from '../limits/rate-limiter.ts'
import type { ApiArea } from './envelopes.ts'

/** Headers that state the limits of a key. `docs/api.md: Limits`. */
type LimitHeaders = (figures: LimitFigures, nowMs: number) => ResponseHeaders

/** Units of a limit, in the order in which their headers are written. */
const COUNTED = ['requests', 'tokens'] as const

/** How the clients of an area read limits. Gemini's clients read `RetryInfo` of an error alone. */
const FORMS: { readonly [In in ApiArea]?: LimitHeaders } = {
  relay: openaiHeaders,
  rerank: openaiHeaders,
  messages: anthropicHeaders,
}

/** Names of all headers that state limits; pages of other origins may read them. */
export const LIMIT_HEADER_NAMES: readonly string[] = Object.keys({
  ...openaiHeaders({ requests: anyFigures(), tokens: anyFigures() }),
  ...anthropicHeaders({ requests: anyFigures(), tokens: anyFigures() }, 0),
}).toSorted()

/** Returns what states the limits to the clients of an area; undefined if they do not read any. */
export function limitHeadersOf(area: ApiArea): LimitHeaders | undefined {
  return FORMS[area]
}

function openaiHeaders(figures: LimitFigures): ResponseHeaders {
  const headers: Record<string, string> = {}
  for (const counted of COUNTED) {
    const one = figures[counted]
    if (!one) continue
    headers[`x-ratelimit-limit-${counted}`] = String(one.limit)
    headers[`x-ratelimit-remaining-${counted}`] = String(one.remaining)
    headers[`x-ratelimit-reset-${counted}`] = goDuration(one.resetMs)
  }
  return headers
}

function anthropicHeaders(figures: LimitFigures, nowMs: number): ResponseHeaders {
  const headers: Record<string, string> = {}
  for (const counted of COUNTED) {
    const one = figures[counted]
    if (!one) continue
    headers[`anthropic-ratelimit-${counted}-limit`] = String(one.limit)
    headers[`anthropic-ratelimit-${counted}-remaining`] = String(one.remaining)
    headers[`anthropic-ratelimit-${counted}-reset`] = rfc3339(nowMs + one.resetMs)
  }
  return headers
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

/** A time in whole seconds, rounded up. */
function rfc3339(ms: number): string {
  return new Date(Math.ceil(ms / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}

function anyFigures(): CountFigures {
  return { limit: 0, remaining: 0, resetMs: 0 }
}
