import { WireError } from '../wire-error.ts'
import { ChunkList } from './chunk-list.ts'

/** Size in bytes of the shortest frame with data: the field name `data`, and two line ends. */
export const MIN_DATA_FRAME_BYTES = 6

const LF = 0x0a
const CR = 0x0d
const BLANK_LINE = Buffer.from('\n\n')
const EMPTY = Buffer.alloc(0)
/**
 * Number of bytes at the end of a chunk that are enough to find a blank line that continues in the next
 * chunk. The longest is CR LF CR, then LF.
 */
const SEAM_BYTES = 3
/**
 * Chunks up to this size in bytes are searched together with the end of the bytes that are held back; larger
 * chunks are searched on their own.
 */
const MAX_COPY_BYTES = 4_096

/**
 * Splits server-sent events at blank lines (LF, CR LF or CR, also mixed), wherever chunks are cut. The time
 * is linear in the number of bytes, even with very small chunks. Bytes of incomplete frames are copied and
 * held, so that the memory of a chunk can be reused. A frame that ends in CR is complete once the next byte
 * shows whether an LF belongs to it. Throws `upstream_error` if a frame exceeds the maximum size. `memory`
 * records the number of held bytes.
 */
export class FrameSplitter {
  readonly #maxEventBytes: number
  readonly #memory: EventMemory | undefined
  /** Bytes of an incomplete frame. */
  readonly #held = new ChunkList()
  #bytes: Buffer = EMPTY
  /**
   * Offsets of the next CR and of the next two LFs in a row, from the position that was searched last; −1 if
   * there are none.
   */
  #cr = 0
  #blank = 0

  constructor(maxEventBytes = Number.POSITIVE_INFINITY, memory?: EventMemory) {
    this.#maxEventBytes = maxEventBytes
    this.#memory = memory
  }

  /** Number of bytes of an incomplete frame that are held. */
  get heldBytes(): number {
    return this.#held.length
  }

  /** Returns the first `size` of the bytes that are held. */
  bufferedHead(size: number): Buffer {
    return this.#held.head(size)
  }

  /** Whether the held bytes end in a blank line with a CR, so that only an LF could still belong to them. */
  get isBufferComplete(): boolean {
    const end = this.#held.tail(2)
    return end[end.length - 1] === CR && (end.length === 1 || isLineEnd(end[0]))
  }

  /** Returns the held bytes and removes them from memory. */
  takeBuffered(): Buffer {
    this.#memory?.resize(0)
    return this.#held.take()
  }

  /** Ends the stream. Returns the remaining bytes, and whether they are a complete frame. */
  end(): { readonly bytes: Buffer; readonly isWhole: boolean } {
    const isWhole = this.isBufferComplete
    return { bytes: this.takeBuffered(), isWhole }
  }

  /**
   * Adds a chunk. Returns the bytes to read, which begin with a frame; undefined if no frame can be complete
   * yet. The caller then calls `markRead` with the offset up to which it has read.
   */
  take(chunk: Buffer): Buffer | undefined {
    if (this.#held.length === 0) return this.#read(chunk)
    if (!this.#endsIn(chunk)) {
      this.#hold(chunk)
      return undefined
    }
    return this.#read(Buffer.concat([this.takeBuffered(), chunk]))
  }

  /** Returns the offset after the frame at `from`, including its blank line; −1 if it is incomplete. */
  next(from: number): number {
    const end = this.#end(from, true)
    if (end - from > this.#maxEventBytes) this.#tooLarge()
    return end
  }

  /** Marks the bytes before `from` as read, and holds the bytes after it until the next chunk arrives. */
  markRead(from: number): void {
    if (from < this.#bytes.length) this.#hold(this.#bytes.subarray(from))
    this.#bytes = EMPTY
  }

  /**
   * Whether the frame whose beginning is held ends in this chunk, or at the boundary between the held bytes
   * and the chunk.
   */
  #endsIn(chunk: Buffer): boolean {
    const isSmall = chunk.length <= MAX_COPY_BYTES
    this.#read(
      Buffer.concat([this.#held.tail(SEAM_BYTES), isSmall ? chunk : chunk.subarray(0, SEAM_BYTES + 1)]),
    )
    if (this.#end(0, this.#held.length <= SEAM_BYTES) >= 0) return true
    if (isSmall) return false
    this.#read(chunk)
    return this.#end(0, false) >= 0
  }

  #read(bytes: Buffer): Buffer {
    this.#bytes = bytes
    this.#cr = 0
    this.#blank = 0
    return bytes
  }

  #hold(piece: Buffer): void {
    if (this.#held.length + piece.length > this.#maxEventBytes) this.#tooLarge()
    this.#memory?.resize(this.#held.length + piece.length)
    this.#held.add(Buffer.from(piece))
  }

  /**
   * Returns the offset after the first blank line at or after `from`. `lineStart` says whether a line begins
   * at `from`.
   */
  #end(from: number, lineStart: boolean): number {
    const bytes = this.#bytes
    if (this.#cr >= 0 && this.#cr <= from) this.#cr = bytes.indexOf(CR, from)
    if (this.#blank >= 0 && this.#blank <= from) this.#blank = bytes.indexOf(BLANK_LINE, from)
    if (this.#cr < 0 || (this.#blank >= 0 && this.#blank < this.#cr)) {
      if (lineStart && bytes[from] === LF) return from + 1
      return this.#blank < 0 ? -1 : this.#blank + 2
    }
    return endWithCr(bytes, from, lineStart)
  }

  #tooLarge(): never {
    throw new WireError(
      'upstream_error',
      `The upstream sent an event of more than ${this.#maxEventBytes} bytes.`,
    )
  }
}

function endWithCr(bytes: Buffer, from: number, lineStart: boolean): number {
  const length = bytes.length
  let atLineStart = lineStart
  let p = from
  while (p < length) {
    const byte = bytes[p] as number
    p++
    if (byte !== LF && byte !== CR) {
      atLineStart = false
      continue
    }
    if (byte === CR) {
      if (p === length) return -1
      if (bytes[p] === LF) p++
    }
    if (atLineStart) return p
    atLineStart = true
  }
  return -1
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === LF || byte === CR
}

/**
 * Returns the data of a frame by the rules of server-sent events: the values of its `data` fields, one per
 * line. Undefined if it has none, like a comment. The caller must remove a byte order mark at the start of
 * the stream.
 */
export function frameData(frame: string): string | undefined {
  const end = frame.length - BLANK.length
  const isPlain = frame.startsWith('data: ') && frame.endsWith(BLANK) && frame.indexOf('\n') === end
  return isPlain && !frame.includes('\r') ? frame.slice(6, end) : fieldOf(frame, 'data')
}

/** Collects all values of a field, one per line; undefined if there are none. */
function fieldOf(frame: string, name: string): string | undefined {
  let data: string | undefined
  for (const line of frame.split(LINE_END)) {
    const colon = line.indexOf(':')
    if ((colon < 0 ? line : line.slice(0, colon)) !== name) continue
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    data = data === undefined ? value : `${data}\n${value}`
  }
  return data
}

/** Returns the name of the event; undefined for an event without a name. */
export function eventNameOfFrame(frame: string): string | undefined {
  return fieldOf(frame, 'event')?.split('\n').pop()
}

/** Whether the event is named `error`. Such an event is an error even if its data does not look like one. */
export function isErrorEvent(frame: string): boolean {
  return frame.includes('error') && eventNameOfFrame(frame) === 'error'
}

const BLANK = '\n\n'
const LINE_END = /\r\n|\n|\r/

/** Maximum number of bytes that are held of an event that must be complete before it can be read. */
export const MAX_EVENT_BYTES = 33_554_432

/** Records the memory used for the incomplete event of one stream. `docs/api.md: Limits`. */
export interface EventMemory {
  /** Sets the number of bytes of the event that are held now. */
  resize(bytes: number): void
}
