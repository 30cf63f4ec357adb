import { WireError } from '../wire-error.ts'
import { hasBytesAt } from './bytes.ts'
import type { Node, ScannedObject } from './scanned-object.ts'

/** A known name of a member, in one of the spellings that requests may use. */
interface KnownName {
  /** Number of the field. All spellings of a field have the same number. */
  readonly field: number
  readonly spelling: string
  readonly bytes: Buffer
  /** Names known inside the value, if it is an object or an array of objects. */
  readonly below: NamesBelow | undefined
}

/** Returns the names that are known inside a value. A function allows recursive objects, such as JSON Schemas. */
export type NamesBelow = () => KnownMemberNames

/** Returns all spellings of a field, the preferred one first. */
export type SpellingsOf = (field: string) => readonly [string, ...string[]]

/**
 * Fields that an object has had so far are remembered, to find repeated ones: those whose number is below
 * this as bits of an integer, all others in a set.
 */
const BITS = 32
const NONE: readonly KnownName[] = []
const OPEN_ARRAY = 0x5b
const OPEN_OBJECT = 0x7b
const onlyItself: SpellingsOf = (field) => [field]

/**
 * Names of the members that the gateway reads in an object. They must be spelled exactly: some upstreams
 * ignore upper and lower case, and use the last of several members with the same name, so they might read a
 * different request than the gateway has checked. `docs/api.md: Names of members`.
 */
export class KnownMemberNames {
  readonly #bySize: (readonly KnownName[])[] = []
  readonly #bySpelling = new Map<string, KnownName>()
  readonly #byFolding = new Map<string, KnownName>()
  readonly #fields: Iterable<string>
  readonly #below: Readonly<Record<string, NamesBelow>>
  readonly #spellingsOf: SpellingsOf

  /**
   * `fields` are the known names, in ASCII. `below` has, by field, the names that are known inside its value.
   * `spellingsOf` returns all spellings of a field that requests may use.
   */
  constructor(
    fields: Iterable<string>,
    below: Readonly<Record<string, NamesBelow>> = {},
    spellingsOf: SpellingsOf = onlyItself,
  ) {
    this.#fields = fields
    this.#below = below
    this.#spellingsOf = spellingsOf
  }

  // Done for the first request, because most processes read requests of few protocols.
  #index(): void {
    const spellingsOf = this.#spellingsOf
    const all = new Map<string, NamesBelow | undefined>()
    for (const given of this.#fields) all.set(spellingsOf(given)[0], undefined)
    for (const [given, names] of Object.entries(this.#below)) all.set(spellingsOf(given)[0], names)
    for (const [field, [usual, names]] of [...all].entries())
      for (const spelling of new Set(spellingsOf(usual))) {
        const name = { field, bytes: Buffer.from(spelling), spelling, below: names }
        while (this.#bySize.length <= spelling.length) this.#bySize.push(NONE)
        this.#bySize[spelling.length] = [...(this.#bySize[spelling.length] ?? NONE), name]
        this.#bySpelling.set(spelling, name)
        this.#byFolding.set(folded(spelling), name)
      }
  }

  /** Checks the name of a form field. Throws like `check` if it is a known name in a different spelling. */
  checkName(text: string): void {
    if (this.#bySize.length === 0) this.#index()
    this.#named(text)
  }

  /**
   * Checks the names of the members of a request, in all objects for which names are known. Throws
   * `invalid_request` for a name that differs from a known name only in upper and lower case, and for two
   * spellings of one field. Throws `invalid_json` for a name that occurs twice.
   */
  check(scan: ScannedObject): void {
    this.#checkObject(scan, scan.root)
  }

  // Reads the tape of the scanned object directly in one loop, because this is done for each key of each
  // message.
  #checkObject(scan: ScannedObject, object: Node): void {
    if (this.#bySize.length === 0) this.#index()
    const { bytes, tape } = scan
    const end = tape[object + 2] as number
    let found = 0
    let others: Set<string | number> | undefined
    for (let key = object + 3; key < end; key = tape[key + 5] as number) {
      const start = (tape[key] as number) + 1
      const name =
        this.#exact(bytes, start, (tape[key + 1] as number) - 1 - start) ?? this.#named(scan.keyText(key))
      if (name && name.field < BITS) {
        const bit = 1 << name.field
        if ((found & bit) !== 0) throw this.#givenTwice(scan, object, key)
        found |= bit
      } else {
        const id = name ? name.field : scan.keyText(key)
        if (others?.has(id)) throw this.#givenTwice(scan, object, key)
        others = (others ?? new Set()).add(id)
      }
      const below = name?.below
      if (below && scan.isContainer(key + 3)) below().#checkValue(scan, key + 3)
    }
  }

  #checkValue(scan: ScannedObject, value: Node): void {
    const { bytes, tape } = scan
    const first = bytes[tape[value] as number]
    if (first === OPEN_OBJECT) this.#checkObject(scan, value)
    else if (first === OPEN_ARRAY) {
      const end = tape[value + 2] as number
      for (let at = value + 3; at < end; at = tape[at + 2] as number)
        if (bytes[tape[at] as number] === OPEN_OBJECT) this.#checkObject(scan, at)
    }
  }

  /**
   * Finds the known name with exactly these bytes; undefined for unknown keys, and for keys with escape
   * sequences.
   */
  #exact(bytes: Buffer, start: number, size: number): KnownName | undefined {
    const names = size < this.#bySize.length ? (this.#bySize[size] as readonly KnownName[]) : NONE
    for (let at = 0; at < names.length; at++) {
      const name = names[at] as KnownName
      if (hasBytesAt(bytes, start, name.bytes)) return name
    }
    return undefined
  }

  /** Creates the error for a key that repeats an earlier key of the object. */
  #givenTwice(scan: ScannedObject, object: Node, key: Node): WireError {
    const text = scan.keyText(key)
    const field = this.#bySpelling.get(text)?.field
    const keys = scan.entries(object).map((entry) => entry.key)
    const first = keys.find(
      (one) => one === text || (field !== undefined && this.#bySpelling.get(one)?.field === field),
    )
    return givenTwice(scan, key, first ?? text, text)
  }

  /** Finds the known name that equals a decoded key. Throws if it is a different spelling of a known name. */
  #named(text: string): KnownName | undefined {
    const name = this.#bySpelling.get(text)
    if (name) return name
    const known = this.#byFolding.get(folded(text))
    if (!known) return undefined
    throw new WireError(
      'invalid_request',
      `Invalid name '${text}': expected '${known.spelling}', for which some providers would take it.`,
    )
  }
}

/**
 * Removes the difference between upper and lower case (Unicode's simple case folding), where the result is
 * ASCII.
 */
function folded(text: string): string {
  // The long s (ſ) needs a separate rule, because `toLowerCase` does not change it. It does change the
  // Kelvin sign to `k`.
  return text.toLowerCase().replaceAll('\u017f', 's')
}

function givenTwice(scan: ScannedObject, key: Node, first: string, second: string): WireError {
  const at = `Invalid JSON at byte ${scan.startOf(key)}: the key ${shown(first)} is given twice`
  return new WireError('invalid_json', first === second ? `${at}.` : `${at}, also as ${shown(second)}.`)
}

/** Shortens a name for an error message. */
function shown(name: string): string {
  return JSON.stringify(name.slice(0, 60))
}
