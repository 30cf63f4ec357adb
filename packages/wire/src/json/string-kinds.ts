import { hasBytesAt } from './bytes.ts'

/**
 * Which names and lifetimes of prompt caching occur in a request. They are found in one pass over its short
 * keys and strings. If such a string has an escaped letter, all flags are true, because the string may be any
 * of these names.
 */
export interface FoundStringKinds {
  /** Whether a string begins like the name of a cache mark. */
  readonly directive: boolean
  /** Whether a string begins like the name of a member that controls a provider's cache. */
  readonly cacheMember: boolean
  /**
   * Whether a string begins like `prompt_cache_breakpoint`, whose default lifetime is half an hour, or is the
   * lifetime `30m`.
   */
  readonly halfHour: boolean
  /** Whether a string is a lifetime of an hour or more. */
  readonly longLifetime: boolean
}

const EVERYTHING: FoundStringKinds = {
  directive: true,
  cacheMember: true,
  halfHour: true,
  longLifetime: true,
}

/** Beginnings of the names of cache marks, including the opening quote. */
const DIRECTIVES = ['"cache_control', '"prompt_cache_breakpoint', '"cachePoint'].map((name) =>
  Buffer.from(name),
)
const CACHE_MEMBERS = ['"cache_control', '"prompt_cache_', '"cachePoint'].map((name) => Buffer.from(name))
const BREAKPOINTS = [Buffer.from('"prompt_cache_breakpoint')]
const HALF_HOURS = [Buffer.from('"30m"')]
const LONG_LIFETIMES = ['"1h"', '"12h"', '"24h"'].map((text) => Buffer.from(text))
/**
 * Maximum size in bytes of the strings that are examined. Longer strings are neither names nor lifetimes of
 * prompt caching.
 */
const MAX_NAME_BYTES = 100
const MAX_LIFETIME_BYTES = 5
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LETTER_U = 0x75
/** Whether a byte can be the first of a name or lifetime of prompt caching, or of an escape sequence. */
const IS_FIRST = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte === BACKSLASH || [...CACHE_MEMBERS, ...HALF_HOURS, ...LONG_LIFETIMES].some((one) => one[1] === byte)
    ? 1
    : 0,
)

/** Finds the flags of a JSON text. `tape` contains the offsets of its values, as in `ScannedObject`. */
export function findStringKinds(bytes: Buffer, tape: readonly number[]): FoundStringKinds {
  let directive = false
  let cacheMember = false
  let halfHour = false
  let longLifetime = false
  for (let node = 0; node < tape.length; node += 3) {
    const start = tape[node] as number
    if (IS_FIRST[bytes[start + 1] as number] === 0 || bytes[start] !== QUOTE) continue
    const end = tape[node + 1] as number
    if (end - start > MAX_NAME_BYTES) continue
    if (hasEscapedLetter(bytes, start, end)) return EVERYTHING
    if (end - start <= MAX_LIFETIME_BYTES) {
      longLifetime ||= isAnyAt(bytes, start, LONG_LIFETIMES)
      halfHour ||= isAnyAt(bytes, start, HALF_HOURS)
    } else if (isAnyAt(bytes, start, CACHE_MEMBERS)) {
      cacheMember = true
      directive ||= isAnyAt(bytes, start, DIRECTIVES)
      halfHour ||= isAnyAt(bytes, start, BREAKPOINTS)
    }
  }
  return { directive, cacheMember, halfHour, longLifetime }
}

function isAnyAt(bytes: Buffer, start: number, texts: readonly Buffer[]): boolean {
  for (const text of texts) if (hasBytesAt(bytes, start, text)) return true
  return false
}

// Libraries that write JSON escape control characters and a few signs, but never letters, digits or
// underscores.
function hasEscapedLetter(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start + 1; at < end - 1; at++) {
    if (bytes[at] !== BACKSLASH) continue
    at++
    if (bytes[at] !== LETTER_U) continue
    const code = Number.parseInt(bytes.toString('latin1', at + 1, at + 5), 16)
    if (/\w/.test(String.fromCharCode(code))) return true
  }
  return false
}
