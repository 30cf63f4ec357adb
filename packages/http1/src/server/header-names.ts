/** Headers that the server reads for itself. */
const OWN_NAMES = ['content-length', 'expect', 'host', 'transfer-encoding'] as const

/** Headers of a request by lower-case name; values in Latin-1, without surrounding blanks. */
export type Headers<Name extends string = string> = {
  readonly [Each in Name | (typeof OWN_NAMES)[number]]?: string | undefined
}

/** Headers with one value: the first counts. Repeated values of other headers are joined. */
const SINGLE_VALUED = new Set(['authorization', 'content-length', 'content-type', 'host'])

/** A name and its bytes, without the `*` of a prefix. */
interface WantedHeader {
  readonly name: string
  readonly bytes: Buffer
}

/**
 * Headers of a request that are read: the given ones, and those that the server itself needs. Others count
 * towards the limits, but are never decoded. Names are in lower case; one that ends with `*`, such as
 * `x-forwarded-*`, stands for all such headers that are not listed.
 */
export class HeaderNames<const Name extends string> {
  readonly names: readonly Name[]
  /** Complete names, which contain no `*`, by their length. */
  readonly #byLength: (WantedHeader[] | undefined)[] = []
  readonly #prefixes: WantedHeader[] = []

  constructor(names: readonly Name[]) {
    this.names = names
    for (const name of new Set<string>([...names, ...OWN_NAMES])) {
      if (name.endsWith('*')) this.#prefixes.push({ name, bytes: Buffer.from(name.slice(0, -1)) })
      else (this.#byLength[name.length] ??= []).push({ name, bytes: Buffer.from(name) })
    }
  }

  /** Finds the name at these positions, in any case; undefined for a header that is not read. */
  at(bytes: Uint8Array, start: number, end: number): string | undefined {
    const candidates = this.#byLength[end - start]
    if (candidates)
      for (const { name, bytes: letters } of candidates) if (matchesAt(bytes, start, letters)) return name
    for (const { name, bytes: letters } of this.#prefixes)
      if (end - start > letters.length && matchesAt(bytes, start, letters)) return name
    return undefined
  }
}

/** Merges the value of a repeated header into the value `before` it. */
export function mergedValue(name: string, before: string, value: string): string {
  if (SINGLE_VALUED.has(name)) return before
  return `${before}${name === 'cookie' ? '; ' : ', '}${value}`
}

// Ignores case by setting bit 0x20, which turns only a capital letter into another character of a name.
function matchesAt(bytes: Uint8Array, start: number, letters: Buffer): boolean {
  for (let i = 0; i < letters.length; i++) {
    const letter = letters[i] as number
    const actual = bytes[start + i] as number
    if (actual !== letter && (actual | 0x20) !== letter) return false
  }
  return true
}
