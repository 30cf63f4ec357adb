/**
 * For how many milliseconds a `retry-after` asks to be left alone: seconds, or a date. Undefined for anything
 * else, and for a time that has passed.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const ms = /^\d{1,9}(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : dateOf(text) - nowMs
  return ms > 0 ? ms : undefined
}

/**
 * A `retry-after` that a caller may be told: whole seconds or an HTTP date (RFC 9110, 10.2.3); undefined for
 * anything else.
 */
export function forwardedRetryAfter(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  return /^\d{1,9}$/.test(text) || !Number.isNaN(dateOf(text)) ? text : undefined
}

// RFC 9110 dates alone: Date.parse would find one in almost anything.
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN
}
