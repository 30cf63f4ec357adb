import { hasBytesAt } from '../json/bytes.ts'
import { keyText } from '../json/scanned-object.ts'

const BACKSLASH = 0x5c
const FREE = -1

/** Finds values by names that are JSON strings in a buffer, without decoding the strings. */
export class NameTable<Value> {
  readonly #byName: ReadonlyMap<string, Value>
  readonly #names: readonly Buffer[]
  readonly #values: readonly Value[]
  /** Indexes of names by the hash of the name. The next slot is tried if two names have the same hash. */
  readonly #slots: Int16Array
  readonly #mask: number

  /** The names must be ASCII. */
  constructor(entries: ReadonlyMap<string, Value>) {
    this.#byName = entries
    this.#names = [...entries.keys()].map((name) => Buffer.from(name))
    this.#values = [...entries.values()]
    this.#mask = 2 ** Math.ceil(Math.log2(Math.max(4, entries.size * 4))) - 1
    this.#slots = new Int16Array(this.#mask + 1).fill(FREE)
    for (const [index, name] of this.#names.entries()) {
      let slot = hashOf(name, 0, name.length) & this.#mask
      while (this.#slots[slot] !== FREE) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index
    }
  }

  /** Finds the value for the JSON string between two offsets, which include its quotes. */
  find(bytes: Buffer, from: number, to: number): Value | undefined {
    const start = from + 1
    const size = to - 1 - start
    if (size <= 0) return undefined
    let slot = hashOf(bytes, start, size) & this.#mask
    for (let index = this.#slots[slot] as number; index !== FREE; index = this.#slots[slot] as number) {
      const name = this.#names[index] as Buffer
      if (name.length === size && hasBytesAt(bytes, start, name)) return this.#values[index]
      slot = (slot + 1) & this.#mask
    }
    return hasEscape(bytes, from, to) ? this.#byName.get(keyText(bytes, from, to)) : undefined
  }
}

function hashOf(bytes: Buffer, start: number, size: number): number {
  const first = bytes[start] as number
  const last = bytes[start + size - 1] as number
  const middle = bytes[start + (size >> 1)] as number
  return size + first * 5 + middle * 11 + last * 23
}

/** Whether the JSON string between two offsets has an escape sequence. */
export function hasEscape(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] === BACKSLASH) return true
  return false
}
