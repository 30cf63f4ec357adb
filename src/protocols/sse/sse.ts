import { GatewayError } from '../../errors.ts'
import type { EventBudget } from './event-budget.ts'
import { ChunkList } from './chunk-list.ts'

/**
 * The bytes of the shortest frame that has data: the field's name and two line ends. Shorter ones need no
 * reading.
 */
export const MIN_DATA_FRAME_BYTES = 6

const LF = 0x0a
const CR = 0x0d
const BLANK_LINE = Buffer.from('\n\n')
const EMPTY = Buffer.alloc(0)
/** More bytes than the longest run of line ends that can straddle two chunks: CR LF CR, then LF. */
const SEAM_BYTES = 3
/** Chunks up to this many bytes are copied sooner than looked at in two parts. */
const MAX_COPY_BYTES = 4_096

/**
 * Splits server-sent events at blank lines (LF, CR LF or CR, mixed), wherever the network cut them. Linear in
 * the bytes pushed, however small the chunks; what is kept across chunks is copied, so that a chunk's memory
 * may be used again. A frame that ends in a CR is whole when the next byte shows whether an LF belongs to it.
 * Throws `upstream_error` where one frame is larger than the cap, and `overloaded` where the budget for held
 * bytes is used up.
 */
export class FrameSplitter {
  readonly #maxEventBytes: number
  readonly #budget: EventBudget | undefined
  /** The beginning of a frame. */
  readonly #held = new ChunkList()
  #bytes: Buffer = EMPTY
  /**
   * The next CR, and the next two LFs in a row, at or after the last place that was asked for; −1 = none
   * left.
   */
  #cr = 0
  #blank = 0

  constructor(maxEventBytes = Number.POSITIVE_INFINITY, budget?: EventBudget) {
    this.#maxEventBytes = maxEventBytes
    this.#budget = budget
  }

  /** Bytes of a frame that is not whole yet. */
  get heldBytes(): number {
    return this.#held.length
  }

  /** The first so many of the held bytes. */
  heldHead(size: number): Buffer {
    return this.#held.head(size)
  }

  /**
   * Whether the held bytes end in a blank line: they wait for the next byte alone, which may be the LF of its
   * CR.
   */
  get isHeldComplete(): boolean {
    const end = this.#held.tail(2)
    return end[end.length - 1] === CR && (end.length === 1 || isLineEnd(end[0]))
  }

  /** The held bytes; they are held no longer. */
  takeHeld(): Buffer {
    this.#budget?.release(this.#held.length)
    return this.#held.take()
  }

  /** What is left when the stream ends, and whether it is a frame that only the end made whole. */
  end(): { readonly bytes: Buffer; readonly isWhole: boolean } {
    const isWhole = this.isHeldComplete
    return { bytes: this.takeHeld(), isWhole }
  }

  /**
   * The bytes to read, which begin with a frame; undefined while none can be whole. `keep` says how far they
   * were read.
   */
  take(chunk: Buffer): Buffer | undefined {
    if (this.#held.length === 0) return this.#read(chunk)
    if (!this.#endsIn(chunk)) {
      this.#hold(chunk)
      return undefined
    }
    return this.#read(Buffer.concat([this.takeHeld(), chunk]))
  }

  /** The end of the frame at this offset of what was taken, its blank line included; −1 = not whole yet. */
  next(from: number): number {
    const end = this.#end(from, true)
    if (end - from > this.#maxEventBytes) this.#tooLarge()
    return end
  }

  /** The last whole frame of what was taken ended here. */
  markRead(from: number): void {
    if (from < this.#bytes.length) this.#hold(this.#bytes.subarray(from))
    this.#bytes = EMPTY
  }

  /** Whether the held frame ends in this chunk: where the two meet, or within. */
  #endsIn(chunk: Buffer): boolean {
    const isSmall = chunk.length <= MAX_COPY_BYTES
    this.#read(Buffer.concat([this.#held.tail(SEAM_BYTES), isSmall ? chunk : chunk.subarray(0, SEAM_BYTES + 1)]))
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
    this.#budget?.grow(this.#held.length, this.#held.length + piece.length)
    this.#held.add(Buffer.from(piece))
  }

  /**
   * The end of the first blank line at or after `from`; a line begins at `from` itself only if `lineStart`.
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
    throw new GatewayError(
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
 * The data of a frame by the rules for interpreting an event stream: the values of its `data` fields, a line
 * each; undefined where it has none (comments, keep-alives). The byte order mark at a stream's start is the
 * caller's to take off.
 */
export function dataOf(frame: string): string | undefined {
  const end = frame.length - BLANK.length
  const isPlain = frame.startsWith('data: ') && frame.endsWith(BLANK) && frame.indexOf('\n') === end
  return isPlain && !frame.includes('\r') ? frame.slice(6, end) : fieldOf(frame, 'data')
}

/** All values of a field, a line each; undefined where the frame has no such field. */
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

/** The frame's event name; undefined where it is a plain message. */
export function eventOf(frame: string): string | undefined {
  return fieldOf(frame, 'event')?.split('\n').pop()
}

/** Whether the frame's event is named `error`: it is one then, whatever its data say. */
export function isErrorEvent(frame: string): boolean {
  return frame.includes('error') && eventOf(frame) === 'error'
}

const BLANK = '\n\n'
const LINE_END = /\r\n|\n|\r/
