import { errorInAnswer } from './answer-error.ts'
import { JsonOutline } from './json/json-outline.ts'
import { ChunkList } from './sse/chunk-list.ts'
import type { Usage } from './usage.ts'
import { parseRecord } from './json/record.ts'
import type { ReplyFacts } from './reply-facts.ts'
import type { VectorResponseReader } from './texts-to-embed.ts'

/**
 * A vector as it was written in a response: a list of numbers with its brackets, or base64 with its quotes.
 */
export interface RawVector {
  readonly form: 'numbers' | 'base64'
  readonly text: Buffer
}

/** Receives the parts of a response in order. All parts together are all bytes of the response. */
export interface VectorListener {
  onVector(vector: RawVector): void
  onOther(bytes: Buffer): void
}

const COLON = 0x3a
const QUOTE = 0x22
const OPEN = 0x5b
const CLOSE = 0x5d

/**
 * Maximum size of a vector in bytes, by its last character: `]` of a list of numbers, `"` of base64. It is at
 * least twice the size of the longest known vectors (12,288 numbers). Vectors up to this size are converted
 * within a few milliseconds; longer ones are forwarded unchanged.
 */
const MAX_VECTOR_BYTES = { [CLOSE]: 524_288, [QUOTE]: 262_144 }
/** Maximum number of bytes of a member's name, including the colon and the white space around it. */
const MAX_NAME_BYTES = 256
const NOTHING = Buffer.alloc(0)

/** Base64 in JSON, in which a slash may be escaped. */
const BASE64 = /^"(?:[A-Za-z0-9+/]|\\\/)+={0,2}"$/

function isBase64(text: Buffer): boolean {
  return BASE64.test(text.toString('latin1'))
}

/**
 * Finds the vectors of a response by the name of their member, while it streams in pieces of any size.
 * Vectors are not parsed: a list of numbers ends at the first bracket, base64 at the first quote. The memory
 * is limited to the longest vector and the outline of the rest of the response.
 */
export class VectorReader {
  readonly #name: Buffer
  readonly #listener: VectorListener
  readonly #outline = new JsonOutline()
  readonly #vector = new ChunkList()
  /** Last byte that the current vector will have; 0 if no vector is being read. */
  #closing: 0 | typeof CLOSE | typeof QUOTE = 0
  /** Bytes not passed on yet, because they may be the beginning of a member with a vector. */
  #pending: Buffer = NOTHING
  #count = 0

  constructor(name: 'embedding' | 'values', listener: VectorListener) {
    this.#name = Buffer.from(`"${name}"`)
    this.#listener = listener
  }

  /** Number of vectors found in the response so far. */
  get count(): number {
    return this.#count
  }

  /** The response read so far, with an empty list instead of each vector; undefined if it is too long. */
  get outline(): string | undefined {
    return this.#outline.text
  }

  push(chunk: Buffer): void {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.#pending = NOTHING
    while (rest.length > 0)
      rest = this.#closing === 0 ? this.#readOther(rest) : this.#readVector(rest, this.#closing)
  }

  /** Ends the response. An incomplete vector is passed on like any other bytes. */
  end(): void {
    const rest = this.#pending.length === 0 ? this.#vector.take() : this.#pending
    this.#pending = NOTHING
    this.#other(rest)
  }

  /** Reads up to the next vector. Returns the bytes from the vector on. */
  #readOther(bytes: Buffer): Buffer {
    for (let from = 0; ; ) {
      const key = bytes.indexOf(this.#name, from)
      if (key === -1) return this.#wait(bytes, bytes.length - this.#beginningAtEnd(bytes))
      from = key + this.#name.length
      const colon = afterSpace(bytes, from)
      const start = bytes[colon] === COLON ? afterSpace(bytes, colon + 1) : colon
      if (start === bytes.length && start - key < MAX_NAME_BYTES) return this.#wait(bytes, key)
      const opening = bytes[start]
      // The member's name can also appear as a value: `"object": "embedding"`.
      if (start === colon || (opening !== OPEN && opening !== QUOTE)) continue
      this.#closing = opening === OPEN ? CLOSE : QUOTE
      this.#other(bytes.subarray(0, start))
      this.#vector.add(bytes.subarray(start, start + 1))
      return bytes.subarray(start + 1)
    }
  }

  /** Continues to read a vector. Returns the bytes after the vector. */
  #readVector(bytes: Buffer, closing: typeof CLOSE | typeof QUOTE): Buffer {
    const last = bytes.indexOf(closing)
    this.#vector.add(last === -1 ? bytes : bytes.subarray(0, last + 1))
    if (last !== -1) this.#endVector(closing)
    else if (this.#vector.length > MAX_VECTOR_BYTES[closing]) this.#endOther()
    return last === -1 ? NOTHING : bytes.subarray(last + 1)
  }

  #endVector(closing: typeof CLOSE | typeof QUOTE): void {
    const form = closing === CLOSE ? 'numbers' : 'base64'
    const text = this.#vector.take()
    this.#closing = 0
    // A list that contains lists or texts is not a vector, and neither is any other text than base64.
    if (form === 'numbers' ? text.indexOf(OPEN, 1) !== -1 || text.includes(QUOTE) : !isBase64(text))
      return this.#other(text)
    if (text.length > MAX_VECTOR_BYTES[closing]) return this.#other(text)
    this.#count++
    this.#outline.push(EMPTY_LIST)
    this.#listener.onVector({ form, text })
  }

  #endOther(): void {
    this.#closing = 0
    this.#other(this.#vector.take())
  }

  #wait(bytes: Buffer, from: number): Buffer {
    this.#other(bytes.subarray(0, from))
    this.#pending = bytes.subarray(from)
    return NOTHING
  }

  #other(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#outline.push(bytes)
    this.#listener.onOther(bytes)
  }

  /** Number of bytes at the end of the chunk that may be the beginning of the member's name. */
  #beginningAtEnd(bytes: Buffer): number {
    let length = Math.min(this.#name.length - 1, bytes.length)
    while (length > 0 && !bytes.subarray(-length).equals(this.#name.subarray(0, length))) length--
    return length
  }
}

const EMPTY_LIST = Buffer.from('[]')

const SPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d])

function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (SPACE.has(bytes[at])) at++
  return at
}

/** Reads a response whose vectors are lists of numbers under one name, at any depth. */
export class VectorListReader implements VectorResponseReader {
  readonly #reader: VectorReader
  readonly #usageOf: (reply: Readonly<Record<string, unknown>>) => Usage | undefined

  /** `usageOf` reads the usage from the response, from which the vectors were removed. */
  constructor(
    name: 'embedding' | 'values',
    usageOf: (reply: Readonly<Record<string, unknown>>) => Usage | undefined,
    onVector: (vector: RawVector) => void,
  ) {
    this.#reader = new VectorReader(name, { onVector, onOther: () => {} })
    this.#usageOf = usageOf
  }

  get count(): number {
    return this.#reader.count
  }

  get outline(): string {
    return this.#reader.outline ?? ''
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk)
  }

  end(): ReplyFacts {
    this.#reader.end()
    const reply = parseRecord(this.outline)
    const error = errorInAnswer(reply, this.count > 0)
    const valid = reply !== undefined && !error && this.count > 0
    return { valid, error, usage: valid ? this.#usageOf(reply) : undefined, text: () => '' }
  }
}
