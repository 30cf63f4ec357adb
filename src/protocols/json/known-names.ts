import { GatewayError } from '../../errors.ts'
import type { Node, ScannedObject } from './scanned-object.ts'

/** Name of a member, in one of the spellings that requests may use. */
interface KnownName {
  /** Field that it names, by which two spellings of one field are recognised. */
  readonly field: string
  readonly spelling: string
  readonly bytes: Buffer
  /** Names in the value: in an object, or in each object of an array. */
  readonly below: KnownNames | undefined
}

/** Returns all spellings of a field, the usual one first. */
export type SpellingsOf = (field: string) => readonly [string, ...string[]]

const NONE: readonly KnownName[] = []
const onlyItself: SpellingsOf = (field) => [field]

/**
 * Names of the members that the gateway reads in an object. Some upstreams compare names without regard to
 * case, and take the last of several members with one name: they would read another request than the gateway
 * decided on. `docs/api.md: Names of members`.
 */
export class KnownNames {
  readonly #bySize: (readonly KnownName[] | undefined)[] = []
  readonly #bySpelling = new Map<string, KnownName>()
  readonly #byFolding = new Map<string, KnownName>()

  /**
   * `fields` are names in ASCII; `below` has those whose values have known names, too. `spellingsOf` returns
   * all spellings of a field, in any of which it may be given here.
   */
  constructor(
    fields: Iterable<string>,
    below: Readonly<Record<string, KnownNames>> = {},
    spellingsOf: SpellingsOf = onlyItself,
  ) {
    const all = new Map<string, KnownNames | undefined>()
    for (const given of fields) all.set(spellingsOf(given)[0], undefined)
    for (const [given, names] of Object.entries(below)) all.set(spellingsOf(given)[0], names)
    for (const [field, names] of all)
      for (const spelling of new Set(spellingsOf(field))) {
        const name = { field, spelling, bytes: Buffer.from(spelling), below: names }
        this.#bySize[spelling.length] = [...(this.#bySize[spelling.length] ?? NONE), name]
        this.#bySpelling.set(spelling, name)
        this.#byFolding.set(folded(spelling), name)
      }
  }

  /** Checks the name of a form's field; throws as `check` does for a spelling that is not exact. */
  checkName(text: string): void {
    this.#named(text)
  }

  /**
   * Checks the members of a request at all levels with known names. Throws `invalid_request` for a name that
   * differs from a known one in case alone, and for two spellings of a field; `invalid_json` for a name that
   * is given twice.
   */
  check(scan: ScannedObject): void {
    this.#checkObject(scan, scan.root)
  }

  #checkObject(scan: ScannedObject, object: Node): void {
    const found: KnownName[] = []
    let others: Set<string> | undefined
    for (let key = scan.firstKey(object); key !== undefined; key = scan.nextKey(key, object)) {
      const exact = this.#exact(scan, key)
      const text = exact ? exact.spelling : scan.keyText(key)
      const name = exact ?? this.#named(text)
      if (name) {
        const other = sameField(found, name)
        if (other) throw givenTwice(scan, key, other.spelling, name.spelling)
        found.push(name)
        if (name.below) name.below.#checkValue(scan, scan.valueOf(key))
        continue
      }
      if (others?.has(text)) throw givenTwice(scan, key, text, text)
      others = (others ?? new Set()).add(text)
    }
  }

  #checkValue(scan: ScannedObject, value: Node): void {
    const kind = scan.kindOf(value)
    if (kind === 'object') this.#checkObject(scan, value)
    else if (kind === 'array')
      for (const element of scan.elements(value))
        if (scan.kindOf(element) === 'object') this.#checkObject(scan, element)
  }

  /** Finds the name whose bytes a key has; undefined for a key with escapes, and for an unknown one. */
  #exact(scan: ScannedObject, key: Node): KnownName | undefined {
    const start = scan.startOf(key) + 1
    for (const name of this.#bySize[scan.endOf(key) - 1 - start] ?? NONE)
      if (startsAt(scan.bytes, start, name.bytes)) return name
    return undefined
  }

  /** Finds the name of a decoded key; throws for another spelling of one. */
  #named(text: string): KnownName | undefined {
    const name = this.#bySpelling.get(text)
    if (name) return name
    const meant = this.#byFolding.get(folded(text))
    if (!meant) return undefined
    throw new GatewayError(
      'invalid_request',
      `Invalid name '${text}': expected '${meant.spelling}', for which some providers would take it.`,
    )
  }
}

/** Folds case as Unicode's simple case folding does, as far as it leads to ASCII. */
function folded(text: string): string {
  // The long s has itself as its lower case; the Kelvin sign has `k`.
  return text.toLowerCase().replaceAll('\u017f', 's')
}

function startsAt(bytes: Buffer, start: number, name: Buffer): boolean {
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name[i]) return false
  return true
}

function sameField(found: readonly KnownName[], { field }: KnownName): KnownName | undefined {
  for (const name of found) if (name.field === field) return name
  return undefined
}

function givenTwice(scan: ScannedObject, key: Node, first: string, second: string): GatewayError {
  const at = `Invalid JSON at byte ${scan.startOf(key)}: the key ${shown(first)} is given twice`
  return new GatewayError('invalid_json', first === second ? `${at}.` : `${at}, also as ${shown(second)}.`)
}

/** Renders a name for a message, truncated. */
function shown(name: string): string {
  return JSON.stringify(name.slice(0, 60))
}
