/** Maximum pause that an upstream can demand for one of its keys. */
export const MAX_RETRY_AFTER_MS = 300_000

/** Header with a pause in milliseconds, in lower case. */
export const RETRY_AFTER_MS_HEADER = 'retry-after-ms'

/** Headers of a response that may demand a pause. */
interface PausingHead {
  readonly retryAfter: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

/**
 * The pause in milliseconds that a response demands, at most `MAX_RETRY_AFTER_MS`; undefined if it demands none.
 * Of the two headers, the one in milliseconds is more exact, and is read first.
 */
export function statedPauseMs({ retryAfter, headers }: PausingHead, nowMs: number): number | undefined {
  const ms = millisecondsIn(headers[RETRY_AFTER_MS_HEADER]) ?? retryAfterMs(retryAfter, nowMs)
  return ms === undefined ? undefined : Math.min(ms, MAX_RETRY_AFTER_MS)
}

/** A `retry-after-ms` header; undefined if it is invalid or zero. */
export function millisecondsIn(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d{1,12}(?:\.\d{1,9})?$/.test(header)) return undefined
  return Number(header) || undefined
}

/**
 * Parses a `retry-after` header, seconds or a date, to milliseconds; undefined if it is invalid or in the
 * past.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const ms = /^\d{1,9}(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : dateOf(text) - nowMs
  return ms > 0 ? ms : undefined
}

/**
 * Validates a `retry-after` header before it is forwarded: whole seconds or an HTTP date (RFC 9110, 10.2.3),
 * otherwise undefined.
 */
export function forwardedRetryAfter(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  return /^\d{1,9}$/.test(text) || !Number.isNaN(dateOf(text)) ? text : undefined
}

// Accepts only dates in the format of RFC 9110, because Date.parse accepts almost anything.
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN
}
