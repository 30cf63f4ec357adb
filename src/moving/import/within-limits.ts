import type { Socket } from 'node:net'
import { type ReadLimits, tooSlow } from './read-limits.ts'

/** Timeout of an answer, as a multiple of the statement timeout. */
const TIMEOUT_FACTOR = 1.05
/** Interval of the checks while an answer arrives. */
const CHECK_INTERVAL_MS = 50
/** Largest ratio of bytes received to bytes of values; rows have headers and lengths too. */
const WIRE_FACTOR = 4

/**
 * Rejects the answer of a server that takes too long or has too many bytes, even if no row of it is complete,
 * and calls `stop`.
 */
export async function withinLimits<Answer>(
  socket: Socket,
  { bytes, ms }: ReadLimits,
  table: string,
  answer: Promise<Answer>,
  stop: () => void,
): Promise<Answer> {
  const { promise, reject } = Promise.withResolvers<never>()
  const untilMs = performance.now() + ms * TIMEOUT_FACTOR
  const timer = setInterval(() => {
    const isTooMuch = socket.bytesRead > bytes * WIRE_FACTOR
    if (!isTooMuch && performance.now() <= untilMs) return
    reject(
      isTooMuch ? new Error(`its server sends more than ${bytes * WIRE_FACTOR} bytes`) : tooSlow(table, ms),
    )
    stop()
  }, CHECK_INTERVAL_MS)
  try {
    return await Promise.race([answer, promise])
  } finally {
    clearInterval(timer)
  }
}
