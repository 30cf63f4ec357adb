import { hasBytesAt } from './bytes.ts'

/** Type of a JSON value, determined by its first byte. */
export type JsonKind = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null'

/** A top-level member with its byte offsets. Each end is the offset after the last byte. */
export interface Member {
  readonly key: string
  /** Offset of the key's opening quote. */
  readonly keyStart: number
  /** Offset of the first byte of the value. */
  readonly start: number
  readonly end: number
  readonly node: Node
  /** Number of elements of an array or members of an object; 0 for other values. */
  readonly count: number
}

/** The outline of a document, and bit sets of the kinds and tables that occur in it. */
export interface OutlinedDocument {
  readonly shape: object
  readonly codes: Uint16Array
  readonly kinds: number
  readonly tables: number
}

/** Identifies a value or a key of a `ScannedObject`: its index in the list of all offsets (the tape). */
export type Node = number

/** Identifies the whole object, which is the first value in the tape. */
export const ROOT: Node = 0

/**
 * A valid JSON object with the offsets of all its values. A value is parsed only when it is needed. The tape
 * is a list with three numbers for each key and value, in the order of the text: begin, end, and index of the
 * next sibling.
 */
export class ScannedObject {
  readonly bytes: Buffer
  readonly members: ReadonlyMap<string, Member>
  /** Offset after the closing brace of the whole object. */
  readonly end: number
  /** The tape itself, for code that must go through all values quickly. Other code uses the methods. */
  readonly tape: readonly number[]
  /** Set by `outlineOf`. */
  outline: OutlinedDocument | undefined = undefined
  readonly #values = new Map<string, unknown>()

  constructor(bytes: Buffer, members: ReadonlyMap<string, Member>, tape: readonly number[], end: number) {
    this.bytes = bytes
    this.members = members
    this.end = end
    this.tape = tape
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

  /** Parses the value of a top-level member and caches the result; undefined if there is no such member. */
  value(key: string): unknown {
    const member = this.members.get(key)
    if (!member) return undefined
    if (!this.#values.has(key)) this.#values.set(key, this.parse(member.node))
    return this.#values.get(key)
  }

  /** Identifies the whole object, which is the first value in the tape. */
  get root(): Node {
    return 0
  }

  kindOf(node: Node): JsonKind {
    const first = this.bytes[this.startOf(node)] as number
    return KINDS[first] as JsonKind
  }

  /** Whether a value is an object or an array. */
  isContainer(node: Node): boolean {
    const first = this.bytes[this.startOf(node)]
    return first === OPENING_BRACE || first === OPENING_BRACKET
  }

  startOf(node: Node): number {
    return this.tape[node] as number
  }

  endOf(node: Node): number {
    return this.tape[node + 1] as number
  }

  /** Whether a key or string in the object begins with these bytes, which must include the opening quote. */
  hasStringFrom(beginning: Buffer): boolean {
    const { bytes, tape } = this
    const { length } = beginning
    const last = beginning[length - 1]
    for (let node = 0; node < tape.length; node += 3) {
      const start = tape[node] as number
      // Compares the last byte first, because the first byte is always a quote.
      if (bytes[start + length - 1] !== last || (tape[node + 1] as number) - start < length) continue
      if (hasBytesAt(bytes, start, beginning)) return true
    }
    return false
  }

  parse(node: Node): unknown {
    return JSON.parse(this.textOf(node))
  }

  /** Returns the JSON text of one value as it was written. */
  textOf(node: Node): string {
    return this.bytes.toString('utf8', this.startOf(node), this.endOf(node))
  }

  /** Returns the elements of an array, in order. */
  elements(node: Node): Node[] {
    const elements: Node[] = []
    const tape = this.tape
    const end = tape[node + 2] as number
    for (let at = node + 3; at < end; at = tape[at + 2] as number) elements.push(at)
    return elements
  }

  /** Returns the values of an object's members, in order. */
  values(node: Node): Node[] {
    const values: Node[] = []
    for (let key = this.firstKey(node); key !== undefined; key = this.nextKey(key, node))
      values.push(this.valueOf(key))
    return values
  }

  /** Returns the first key of an object; undefined if it is empty. */
  firstKey(object: Node): Node | undefined {
    const key = object + 3
    return key < (this.tape[object + 2] as number) ? key : undefined
  }

  /** Returns the key after `key` in the object; undefined after the last one. */
  nextKey(key: Node, object: Node): Node | undefined {
    const next = this.tape[key + 5] as number
    return next < (this.tape[object + 2] as number) ? next : undefined
  }

  /** Returns the value that follows a key. */
  valueOf(key: Node): Node {
    return key + 3
  }

  /** Returns a key as JSON.parse does. */
  keyText(key: Node): string {
    return keyText(this.bytes, this.startOf(key), this.endOf(key))
  }

  /** Returns an object's members in order, including duplicates. */
  entries(node: Node): { readonly key: string; readonly node: Node }[] {
    return this.values(node).map((value) => ({ key: this.keyText(value - 3), node: value }))
  }

  /**
   * Finds the value of a member. If several members have this key, the last one is used, as by JSON.parse.
   */
  memberOf(node: Node, key: string): Node | undefined {
    let found: Node | undefined
    const tape = this.tape
    const end = tape[node + 2] as number
    for (let at = node + 3; at < end; at = tape[at + 5] as number) if (this.isKey(at, key)) found = at + 3
    return found
  }

  /** Whether a key, which may contain escape sequences, equals `key`, which must be ASCII. */
  isKey(node: Node, key: string): boolean {
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
const OPENING_BRACE = 0x7b
const OPENING_BRACKET = 0x5b

/** Decodes a key like JSON.parse: `"mod\u0065l"` is `model`. */
export function keyText(bytes: Buffer, start: number, end: number): string {
  for (let i = start + 1; i < end - 1; i++) {
    const byte = bytes[i] as number
    if (byte === BACKSLASH || byte >= 0x80) return JSON.parse(bytes.toString('utf8', start, end)) as string
  }
  return bytes.toString('latin1', start + 1, end - 1)
}

const OTHER_KINDS: Readonly<Record<string, JsonKind>> = {
  '"': 'string',
  '[': 'array',
  f: 'false',
  n: 'null',
  t: 'true',
  '{': 'object',
}

/** Types by the first byte. An array without gaps, because it is read for every value of a request. */
const KINDS: readonly JsonKind[] = Array.from(
  { length: 256 },
  (_, byte) => OTHER_KINDS[String.fromCharCode(byte)] ?? 'number',
)
