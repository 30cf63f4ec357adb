import { CONTENT_LEVELS } from '../domain/content-log.ts'
import type { CapturedCall } from './content-capture.ts'
import { CONTENT_PARTS, type ContentBytes } from './parts.ts'

/**
 * Calls with their content as they are sent to the thread: a few buffers, because sending an object for each call
 * would cost more time than all other work for the content log.
 */
export interface ContentBatch {
  /** Ids of the calls, with commas between them. */
  readonly ids: string
  /**
   * `COLUMNS` numbers for each call: user id, token id, start and retention in milliseconds, content level, bytes of
   * memory reserved for the call, and the length of each part in bytes.
   */
  readonly numbers: Float64Array
  /** The parts of all calls. */
  readonly bytes: Uint8Array<ArrayBuffer>
}

/**
 * A call in a batch. `lengths` are the sizes of its parts in bytes, in the order of `CONTENT_PARTS`; −1 for
 * an absent part.
 */
export interface BatchedCall extends CapturedCall {
  readonly lengths: readonly number[]
}

/** Bytes of memory reserved for calls of one API key. */
export interface ReservedBytes {
  readonly userId: number
  readonly tokenId: number
  readonly bytes: number
}

const FACTS = 6
const COLUMNS = FACTS + CONTENT_PARTS.length
/** Size in bytes of the memory of a new batch; it doubles when it is full. */
const FIRST_BYTES = 64 * 1024

/**
 * Collects calls with their content for a batch. Contents are copied at once: if the objects of many calls were kept
 * until the batch is sent, the garbage collector would copy all of them.
 */
export class GrowingBatch {
  readonly #ids: string[] = []
  readonly #numbers: number[] = []
  #memory: Uint8Array<ArrayBuffer>
  #length = 0
  #reserved = 0

  /** `memory` is the memory of an earlier batch, which is used again after that batch was written. */
  constructor(memory = new Uint8Array(FIRST_BYTES)) {
    this.#memory = memory
  }

  /** Number of calls. */
  get size(): number {
    return this.#ids.length
  }

  /** Bytes of memory reserved for all calls. */
  get reserved(): number {
    return this.#reserved
  }

  /** The memory, for another batch after this one was written. */
  get memory(): Uint8Array<ArrayBuffer> {
    return this.#memory
  }

  /**
   * Adds a call for which `reserved` bytes of memory are reserved. Throws `RangeError`, and adds nothing, if the
   * system has no memory for the content.
   */
  add(call: CapturedCall, content: ContentBytes, reserved: number): void {
    this.#makeRoomFor(content)
    this.#ids.push(call.id)
    const level = CONTENT_LEVELS.indexOf(call.what)
    this.#numbers.push(call.userId, call.tokenId, call.startedMs, call.keepMs, level, reserved)
    this.#reserved += reserved
    for (const part of CONTENT_PARTS) {
      const bytes = content[part]
      this.#numbers.push(bytes ? bytes.length : -1)
      if (!bytes) continue
      this.#memory.set(bytes, this.#length)
      this.#length += bytes.length
    }
  }

  /** The batch as it is sent to the thread. */
  batch(): ContentBatch {
    return {
      ids: this.#ids.join(','),
      numbers: new Float64Array(this.#numbers),
      bytes: this.#memory.subarray(0, this.#length),
    }
  }

  #makeRoomFor(content: ContentBytes): void {
    const length = CONTENT_PARTS.reduce((sum, part) => sum + (content[part]?.length ?? 0), this.#length)
    if (length <= this.#memory.length) return
    const grown = new Uint8Array(Math.max(length, 2 * this.#memory.length))
    grown.set(this.#memory.subarray(0, this.#length))
    this.#memory = grown
  }
}

/** The calls of a batch. */
export function callsOfBatch({ ids, numbers }: ContentBatch): BatchedCall[] {
  return ids.split(',').map((id, index) => {
    const [userId = 0, tokenId = 0, startedMs = 0, keepMs = 0, level = 0, _reserved, ...lengths] =
      numbers.subarray(index * COLUMNS, (index + 1) * COLUMNS)
    return {
      id,
      userId,
      tokenId,
      startedMs,
      keepMs,
      what: CONTENT_LEVELS[level] as BatchedCall['what'],
      lengths,
    }
  })
}

/** The memory reserved for the calls of a batch. Consecutive calls of the same API key are added up. */
export function reservedBytesOfBatch({ numbers }: ContentBatch): ReservedBytes[] {
  const all: ReservedBytes[] = []
  for (let at = 0; at < numbers.length; at += COLUMNS) {
    const [userId = 0, tokenId = 0] = [numbers[at], numbers[at + 1]]
    const last = all.at(-1)
    const isSame = last?.userId === userId && last.tokenId === tokenId
    if (isSame) all.pop()
    all.push({ userId, tokenId, bytes: (isSame ? last.bytes : 0) + (numbers[at + FACTS - 1] ?? 0) })
  }
  return all
}

/** Divides a batch of at least two calls into two. */
export function halvesOfBatch({ ids, numbers, bytes }: ContentBatch): readonly [ContentBatch, ContentBatch] {
  const all = ids.split(',')
  const middle = all.length >> 1
  let length = 0
  for (let call = 0; call < middle; call += 1)
    for (let part = FACTS; part < COLUMNS; part += 1)
      length += Math.max(0, numbers[call * COLUMNS + part] ?? 0)
  return [
    {
      ids: all.slice(0, middle).join(','),
      numbers: numbers.subarray(0, middle * COLUMNS),
      bytes: bytes.subarray(0, length),
    },
    {
      ids: all.slice(middle).join(','),
      numbers: numbers.subarray(middle * COLUMNS),
      bytes: bytes.subarray(length),
    },
  ]
}
