/** What a JSON value is, seen from its first byte. */
export type JsonKind = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null'

/** One top-level member: byte offsets into the scanned bytes, ends exclusive. */
export interface Member {
  readonly key: string
  /** The opening quote of the key. */
  readonly keyStart: number
  /** The value's first byte, and the one after its last. */
  readonly start: number
  readonly end: number
  readonly node: Node
  /** Elements of an array, members of an object, else 0. */
  readonly count: number
}

/** A place in a `ScannedObject`: one value, or one key within the object that holds it. */
export type Node = number

/**
 * A JSON object that is known to be valid, and where each of its values begins and ends. Nothing is parsed
 * until it is asked for. The tape holds, in document order and for keys and values alike, three numbers:
 * where it begins, where it ends, and the index of what follows it on the same level.
 */
export class ScannedObject {
  readonly bytes: Buffer
  readonly members: ReadonlyMap<string, Member>
  /** The offset after the object's closing brace. */
  readonly end: number
  readonly #tape: readonly number[]
  readonly #values = new Map<string, unknown>()

  constructor(bytes: Buffer, members: ReadonlyMap<string, Member>, tape: readonly number[], end: number) {
    this.bytes = bytes
    this.members = members
    this.end = end
    this.#tape = tape
  }

  has(key: string): boolean {
    return this.members.has(key)
  }

  span(key: string): Member | undefined {
    return this.members.get(key)
  }

  kind(key: string): JsonKind | undefined {
    const member = this.members.get(key)
    return member && this.kindOf(member.node)
  }

  /** JSON.parse of that one value, done once; undefined where the key is absent. */
  value(key: string): unknown {
    const member = this.members.get(key)
    if (!member) return undefined
    if (!this.#values.has(key)) this.#values.set(key, this.parse(member.node))
    return this.#values.get(key)
  }

  kindOf(node: Node): JsonKind {
    const first = this.bytes[this.startOf(node)] as number
    return KINDS[first] ?? 'number'
  }

  startOf(node: Node): number {
    return this.#tape[node] as number
  }

  endOf(node: Node): number {
    return this.#tape[node + 1] as number
  }

  /** JSON.parse of one value. */
  parse(node: Node): unknown {
    return JSON.parse(this.textOf(node))
  }

  /** The JSON text of one value, as it was written. */
  textOf(node: Node): string {
    return this.bytes.toString('utf8', this.startOf(node), this.endOf(node))
  }

  /** The elements of an array, in order. */
  elements(node: Node): Node[] {
    const elements: Node[] = []
    const tape = this.#tape
    const end = tape[node + 2] as number
    for (let at = node + 3; at < end; at = tape[at + 2] as number) elements.push(at)
    return elements
  }

  /** The value of an object's member; of several with the same key the last, as JSON.parse has it. */
  memberOf(node: Node, key: string): Node | undefined {
    let found: Node | undefined
    const tape = this.#tape
    const end = tape[node + 2] as number
    for (let at = node + 3; at < end; at = tape[at + 5] as number) if (this.#isKey(at, key)) found = at + 3
    return found
  }

  /** `key` in plain ASCII against a key that may be written with escapes. */
  #isKey(node: Node, key: string): boolean {
    const start = this.startOf(node) + 1
    const size = this.endOf(node) - 1 - start
    if (size < key.length) return false
    for (let i = 0; i < size; i++) {
      const byte = this.bytes[start + i]
      if (byte === BACKSLASH) return this.parse(node) === key
      if (byte !== key.charCodeAt(i)) return false
    }
    return true
  }
}

const BACKSLASH = 0x5c

/** By first byte; whatever else begins a value begins a number. */
const KINDS: Readonly<Record<number, JsonKind>> = {
  0x22: 'string',
  0x5b: 'array',
  0x66: 'false',
  0x6e: 'null',
  0x74: 'true',
  0x7b: 'object',
}
