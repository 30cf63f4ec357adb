import { crc32 } from 'node:zlib'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'

/** Maximum bytes of a message and of its headers, as the format defines them. */
const MAX_MESSAGE = 16 * 1024 * 1024
const MAX_HEADERS = 128 * 1024
/** Bytes at the beginning of a message: two lengths and their checksum. */
const PRELUDE = 12
const CHECKSUM = 4
/** Bytes of the smallest message, which has no headers and no payload. */
const MIN_MESSAGE = PRELUDE + CHECKSUM

/**
 * Number of bytes of a header value, by its type. Values of types 6 and 7 begin with their length instead.
 */
const VALUE_SIZES: readonly (number | undefined)[] = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16]
const STRING = 7

/** Message of an `application/vnd.amazon.eventstream`. */
export interface StreamMessage {
  /** Headers with string values; others are left out. */
  readonly headers: ReadonlyMap<string, string>
  readonly payload: Buffer
}

/** Thrown for bytes that are not an event stream; the message describes the error. */
export class MalformedEventStream extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MalformedEventStream'
  }
}

/** Reads messages from the chunks of an event stream. Both checksums of each message are verified. */
export class EventStreamReader {
  readonly #memory: EventMemory | undefined
  /** Bytes of an incomplete message. */
  readonly #held = new ChunkList()
  /**
   * Number of bytes that must have arrived before the next step, which reads the lengths of a message or the
   * whole message.
   */
  #needed = PRELUDE

  /** `memory` records the number of held bytes. */
  constructor(memory?: EventMemory) {
    this.#memory = memory
  }

  /** Whether a message has begun but not ended. */
  get isMidMessage(): boolean {
    return this.#held.length > 0
  }

  /**
   * Yields the messages that this chunk completes. Throws `MalformedEventStream`, but only after all messages before the
   * error: they must not be lost because they arrived in the same chunk.
   */
  *push(chunk: Buffer): Generator<StreamMessage, void> {
    this.#held.add(chunk)
    if (this.#held.length >= this.#needed) yield* this.#read(this.#held.take())
    this.#memory?.resize(this.#held.length)
  }

  *#read(given: Buffer): Generator<StreamMessage, void> {
    let bytes = given
    while (bytes.length >= PRELUDE) {
      const total = totalLength(bytes)
      if (bytes.length < total) break
      yield messageOf(bytes.subarray(0, total))
      bytes = bytes.subarray(total)
    }
    if (bytes.length > 0) this.#held.add(bytes)
    this.#needed = bytes.length < PRELUDE ? PRELUDE : totalLength(bytes)
  }
}

function totalLength(bytes: Buffer): number {
  const total = bytes.readUInt32BE(0)
  const headers = bytes.readUInt32BE(4)
  if (bytes.readUInt32BE(8) !== crc32(bytes.subarray(0, 8)))
    throw new MalformedEventStream('the checksum of a prelude is wrong')
  if (total < MIN_MESSAGE + headers || total > MAX_MESSAGE || headers > MAX_HEADERS)
    throw new MalformedEventStream('a message has an impossible length')
  return total
}

function messageOf(bytes: Buffer): StreamMessage {
  const end = bytes.length - CHECKSUM
  if (bytes.readUInt32BE(end) !== crc32(bytes.subarray(0, end)))
    throw new MalformedEventStream('the checksum of a message is wrong')
  const headersEnd = PRELUDE + bytes.readUInt32BE(4)
  return {
    headers: readHeaders(bytes.subarray(PRELUDE, headersEnd)),
    payload: bytes.subarray(headersEnd, end),
  }
}

function readHeaders(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  // Reads the next `size` bytes and advances the position.
  const take = (size: number): Buffer => {
    if (at + size > bytes.length) throw new MalformedEventStream('a header is cut off')
    return bytes.subarray(at, (at += size))
  }
  while (at < bytes.length) {
    const name = take(take(1).readUInt8()).toString()
    const type = take(1).readUInt8()
    if (type >= VALUE_SIZES.length) throw new MalformedEventStream('a header has an unknown type')
    const value = take(VALUE_SIZES[type] ?? take(2).readUInt16BE())
    if (type === STRING) headers.set(name, value.toString())
  }
  return headers
}
