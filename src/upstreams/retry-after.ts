/** Maximum pause, in milliseconds, that is accepted from an upstream for one of its keys. */
export const MAX_RETRY_AFTER_MS = 300_000

/** Header with a pause in milliseconds, in lower case. */
export const RETRY_AFTER_MS_HEADER = 'retry-after-ms'

/** The parts of a response that may demand a pause. */
export interface PausingHead {
  readonly retryAfter: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

/**
 * The pause that a response demands, in milliseconds and at most `MAX_RETRY_AFTER_MS`; undefined if it
 * demands none. `retry-after-ms` takes precedence over `retry-after`, because it is more exact.
 */
export function requestedPauseMs({ retryAfter, headers }: PausingHead, nowMs: number): number | undefined {
  const ms = millisecondsIn(headers[RETRY_AFTER_MS_HEADER]) ?? retryAfterMs(retryAfter, nowMs)
  return ms === undefined ? undefined : Math.min(ms, MAX_RETRY_AFTER_MS)
}

/** The milliseconds in a `retry-after-ms` header; undefined if it is invalid or zero. */
export function millisecondsIn(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d{1,12}(?:\.\d{1,9})?$/.test(header)) return undefined
  return Number(header) || undefined
}

/**
 * Converts a `retry-after` header, which contains seconds or a date, to milliseconds from now; undefined if
 * it is invalid or in the past.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const ms = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : dateOf(text) - nowMs
  return ms > 0 ? ms : undefined
}

/**
 * Returns a `retry-after` header that may be forwarded to clients: whole seconds or an HTTP date (RFC 9110,
 * 10.2.3); undefined if it is neither.
 */
export function forwardedRetryAfter(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  return /^\d{1,9}$/.test(text) || !Number.isNaN(dateOf(text)) ? text : undefined
}

// The format is checked, because `Date.parse` accepts almost anything.
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN
}
