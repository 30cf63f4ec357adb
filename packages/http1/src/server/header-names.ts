/** Headers that the server needs itself. */
const OWN_NAMES = ['content-length', 'expect', 'host', 'transfer-encoding'] as const

/** Headers of a request by lower-case name; values in Latin-1, without surrounding blanks. */
export type Headers<Name extends string = string> = {
  readonly [Each in Name | (typeof OWN_NAMES)[number]]?: string | undefined
}

/**
 * Headers that have one value: if they are repeated, the first value counts. Repeated values of other headers
 * are joined.
 */
const SINGLE_VALUED = new Set(['authorization', 'content-length', 'content-type', 'host'])

/** A name in lower case, and its bytes; both without the `*` of a prefix. */
interface WantedHeader {
  readonly name: string
  readonly bytes: Buffer
}

/**
 * The headers of a request that are read: the given ones, and those that the server itself needs. Other
 * headers count towards the limits, but are never decoded. Names are in lower case. A name that ends with
 * `*`, such as `x-forwarded-*`, stands for all headers with this prefix that are not listed. Headers with one of the
 * prefixes `named` are read under their own names.
 */
export class HeaderNames<const Name extends string> {
  readonly names: readonly Name[]
  /** Complete names, which contain no `*`, by their length. */
  readonly #byLength: (WantedHeader[] | undefined)[] = []
  readonly #prefixes: WantedHeader[] = []
  readonly #named: readonly Buffer[]

  constructor(names: readonly Name[], named: readonly string[] = []) {
    this.names = names
    this.#named = named.map((prefix) => Buffer.from(prefix))
    for (const name of new Set<string>([...names, ...OWN_NAMES])) {
      if (name.endsWith('*')) this.#prefixes.push({ name, bytes: Buffer.from(name.slice(0, -1)) })
      else (this.#byLength[name.length] ??= []).push({ name, bytes: Buffer.from(name) })
    }
  }

  /**
   * Finds the header whose name is at these positions, ignoring case; undefined if this header is not read.
   */
  at(bytes: Uint8Array, start: number, end: number): string | undefined {
    const candidates = this.#byLength[end - start]
    if (candidates)
      for (const { name, bytes: letters } of candidates) if (matchesAt(bytes, start, letters)) return name
    for (const { name, bytes: letters } of this.#prefixes)
      if (end - start > letters.length && matchesAt(bytes, start, letters)) return name
    for (const letters of this.#named)
      if (end - start > letters.length && matchesAt(bytes, start, letters))
        return Buffer.from(bytes.subarray(start, end)).toString('latin1').toLowerCase()
    return undefined
  }
}

/** Joins a further value of a repeated header to the value `before`. */
export function mergeRepeatedHeader(name: string, before: string, value: string): string {
  if (SINGLE_VALUED.has(name)) return before
  return `${before}${name === 'cookie' ? '; ' : ', '}${value}`
}

// Ignores case by setting the bit 0x20. Among the characters of header names, this only changes capital
// letters.
function matchesAt(bytes: Uint8Array, start: number, letters: Buffer): boolean {
  for (let i = 0; i < letters.length; i++) {
    const letter = letters[i] as number
    const actual = bytes[start + i] as number
    if (actual !== letter && (actual | 0x20) !== letter) return false
  }
  return true
}
