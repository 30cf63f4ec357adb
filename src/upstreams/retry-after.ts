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
