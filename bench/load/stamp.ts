import process from 'node:process'

/**
 * Marks a piece of content. Thirteen digits follow it: the microsecond at which the piece was sent, on the
 * clock that all processes of a machine share, or the number of microseconds for which it was held.
 */
export const MARK = 126
export const DIGITS = 13
export const BLANK = `~${'0'.repeat(DIGITS)}`
const MODULUS = 10 ** DIGITS

/** Microseconds on the machine's clock. */
export function nowMicros(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return (seconds * 1e6 + Math.floor(nanoseconds / 1000)) % MODULUS
}

/** Writes the digits at a position with enough space for them. */
export function writeStamp(into: Buffer, at: number, micros: number): void {
  let rest = Math.max(0, Math.floor(micros))
  for (let digit = DIGITS - 1; digit >= 0; digit--) {
    into[at + digit] = 48 + (rest % 10)
    rest = Math.floor(rest / 10)
  }
}

/** Reads the digits; undefined if they are incomplete. */
export function readStamp(from: Buffer, at: number): number | undefined {
  if (at + DIGITS > from.length) return undefined
  let value = 0
  for (let digit = 0; digit < DIGITS; digit++) value = value * 10 + (from[at + digit] ?? 48) - 48
  return value
}
