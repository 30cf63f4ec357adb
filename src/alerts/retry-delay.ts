/** Delay before the second attempt; it doubles before each further one. */
const FIRST_MS = 5_000
/** Maximum delay. */
const MAX_MS = 3_600_000
/** Time after the first attempt at which the last one is made. */
const GIVE_UP_MS = 86_400_000

/**
 * Time of the next attempt after a failed one, in Unix milliseconds; undefined if that was the last.
 * `attempts` is the number of failed attempts.
 */
export function nextAttemptMs(attempts: number, firstMs: number, nowMs: number): number | undefined {
  const endMs = firstMs + GIVE_UP_MS
  if (nowMs >= endMs) return undefined
  const delayMs = Math.min(FIRST_MS * 2 ** (attempts - 1), MAX_MS)
  return Math.min(nowMs + delayMs, endMs)
}
