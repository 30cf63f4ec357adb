import { isUtf8 } from 'node:buffer'
import { frameData } from './frame-splitter.ts'

/** A text in a frame, which continues a text of the reply. */
export interface FrameText {
  /** Index of the text that is continued. A reply can have several texts, whose frames alternate. */
  readonly index: number
  readonly text: string
}

/**
 * Reads the text in the data of a frame. Returns undefined if the data contain no text, several texts, or
 * anything else that matters.
 */
export type FrameTextReader = (data: string) => FrameText | undefined

/** Position of the text in the bytes of a frame that matches a template, without its quotes. */
export interface FrameTextMatch {
  readonly from: number
  readonly to: number
  /** Number of escape sequences in the text. */
  readonly escapes: number
  /** Number of characters; an escape sequence counts as one character. */
  readonly codePoints: number
}

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const CLOSE_OBJECT = 0x7d
const FIRST_NON_ASCII = 0x80
const FIRST_LEAD_BYTE = 0xc0
/** Letters of the escape sequences that `JSON.stringify` always writes in the same way, such as `\n`. */
const COMMON_ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\bfnrt'))
/**
 * Members with random strings of varying length, which hide the length of the text from an observer. Some
 * providers instead write a varying number of spaces before the last brace.
 */
const PADDING = [',"obfuscation":"', ',"p":"'] as const
/**
 * A text that replaces the model's text in a frame, to find the position of that text. It does not occur in
 * responses.
 */
const SENTINEL = 'c7a1f0e2-sentinel'
const MAX_CANDIDATES = 4
const NOT_FOUND = -1

/**
 * A frame with a placeholder for the text that the model wrote. A frame that equals it in all other bytes
 * need not be parsed, because it can differ only in this text and in numbers such as the event's number.
 */
export class FrameTemplate implements FrameTextMatch {
  /** Index of the text in the reply that the frame continues. */
  readonly index: number
  readonly #head: BytesWithNumbers
  readonly #tail: BytesWithNumbers
  /**
   * The bytes after the padding, which has a varying length; undefined if frames of this kind have no
   * padding.
   */
  readonly #afterPadding: BytesWithNumbers | undefined
  /** Whether the padding consists of spaces before the last brace, and not of a string. */
  readonly #isSpaced: boolean
  /**
   * The bytes between the texts of two consecutive frames of this kind. They are compared first, because
   * frames of one kind usually follow each other.
   */
  readonly #separator: BytesWithNumbers | undefined
  readonly #headSize: number
  /**
   * Offset in the chunk at which the next frame is known to begin with this template's bytes, and the offset
   * after these bytes.
   */
  #headAt = NOT_FOUND
  #headEnd = 0
  from = 0
  to = 0
  escapes = 0
  /**
   * About the text that was matched last: its number of UTF-8 continuation bytes, whether it is pure ASCII,
   * and whether `JSON.stringify` writes all its escape sequences in the same way.
   */
  #continuations = 0
  #isAscii = true
  #isCommon = true
  /** Offset after the frame that was matched last. */
  end = 0

  constructor(index: number, head: Buffer, tail: Buffer) {
    this.index = index
    this.#head = new BytesWithNumbers(head)
    const { before, after, isSpaced } = splitAtPadding(tail)
    this.#tail = new BytesWithNumbers(before)
    this.#afterPadding = after && new BytesWithNumbers(after)
    this.#isSpaced = isSpaced
    const hasPadding = after !== undefined && !isSpaced
    const isPlain = this.#tail.plain !== undefined && this.#afterPadding?.plain === after
    this.#headSize = head.length
    this.#separator =
      hasPadding || !this.#head.plain ? undefined : new BytesWithNumbers(Buffer.concat([tail, head]), isPlain)
  }

  /** Forgets offsets in the previous chunk, because another chunk follows. */
  newBytes(): void {
    this.#headAt = NOT_FOUND
  }

  /** Whether the frame that begins at `start` is complete and matches this template. */
  match(bytes: Buffer, start: number): boolean {
    const from = start === this.#headAt ? this.#headEnd : this.#head.endIn(bytes, start)
    if (from < 0 || from >= bytes.length) return false
    const to = this.#textEnd(bytes, from)
    if (to < 0) return false
    if (this.#separates(bytes, to)) {
      this.from = from
      this.to = to
      this.end = this.#headAt
      return true
    }
    let end = this.#tail.endIn(bytes, to)
    if (end > 0 && this.#afterPadding) {
      end = this.#isSpaced ? endOfSpaces(bytes, end) : endOfPadding(bytes, end)
      end = this.#afterPadding.endIn(bytes, end)
    }
    this.from = from
    this.to = to
    this.end = end
    return end > 0
  }

  /**
   * Whether the bytes between the texts of two frames are at `at`. If so, remembers that the second frame
   * begins like this template.
   */
  #separates(bytes: Buffer, at: number): boolean {
    const end = this.#separator ? this.#separator.endIn(bytes, at) : NOT_FOUND
    if (end < 0) return false
    this.#headAt = end - this.#headSize
    this.#headEnd = end
    return true
  }

  get codePoints(): number {
    return this.to - this.from - this.escapes - this.#continuations
  }

  /**
   * Whether the text that was matched is valid and written as `JSON.stringify` would write it, so that its
   * bytes can be copied.
   */
  isCopyable(bytes: Buffer): boolean {
    return this.#isCommon && (this.#isAscii || isUtf8(bytes.subarray(this.from, this.to)))
  }

  /** The text that was matched; undefined if it contains an invalid escape sequence. */
  textIn(bytes: Buffer): string | undefined {
    return this.escapes > 0
      ? valueOf(bytes.toString('utf8', this.from - 1, this.to + 1))
      : bytes.toString('utf8', this.from, this.to)
  }

  /** Offset of the quote that ends the text; −1 if the quote is missing or the text is invalid. */
  #textEnd(bytes: Buffer, from: number): number {
    const length = bytes.length
    this.escapes = 0
    this.#continuations = 0
    this.#isAscii = true
    this.#isCommon = true
    for (let p = from; p < length; p++) {
      const byte = bytes[p] as number
      if (byte === QUOTE) return p
      if (byte < SPACE) return -1
      if (byte === BACKSLASH) {
        this.escapes++
        if (!COMMON_ESCAPES.has(bytes[++p] as number)) this.#isCommon = false
      } else if (byte >= FIRST_NON_ASCII) {
        this.#isAscii = false
        if (byte < FIRST_LEAD_BYTE) this.#continuations++
      }
    }
    return -1
  }
}

/**
 * Creates a template from a parsed frame that contains this text. To find the position of the text, another
 * text is put in its place: if the parsed text changes too, the position is right.
 */
export function learnTemplate(
  frame: Buffer,
  piece: FrameText,
  read: FrameTextReader,
): FrameTemplate | undefined {
  if (frame[frame.length - 1] !== LF) return undefined
  const literal = Buffer.from(JSON.stringify(piece.text))
  let at = frame.indexOf(literal)
  for (let places = 0; at >= 0 && places < MAX_CANDIDATES; places++) {
    const head = frame.subarray(0, at + 1)
    const tail = frame.subarray(at + literal.length - 1)
    const data = frameData(`${head.toString()}${SENTINEL}${tail.toString()}`)
    if (data !== undefined && read(data)?.text === SENTINEL)
      return new FrameTemplate(piece.index, Buffer.from(head), Buffer.from(tail))
    at = frame.indexOf(literal, at + 1)
  }
  return undefined
}

/** Parses a JSON string; undefined if it has an invalid escape sequence. */
function valueOf(literal: string): string | undefined {
  try {
    return JSON.parse(literal) as string
  } catch {
    return undefined
  }
}

function splitAtPadding(tail: Buffer): { before: Buffer; after: Buffer | undefined; isSpaced: boolean } {
  for (const mark of PADDING) {
    const at = tail.indexOf(mark)
    if (at < 0) continue
    const from = at + mark.length
    const quote = tail.indexOf(QUOTE, from)
    if (tail.subarray(from, quote).includes(BACKSLASH)) continue
    return { before: tail.subarray(0, from), after: tail.subarray(quote), isSpaced: false }
  }
  let brace = tail.length - 1
  while (tail[brace] === LF || tail[brace] === CR) brace--
  if (tail[brace] !== CLOSE_OBJECT) return { before: tail, after: undefined, isSpaced: false }
  let end = brace
  while (tail[end - 1] === SPACE) end--
  return { before: tail.subarray(0, end), after: tail.subarray(brace), isSpaced: true }
}

function endOfSpaces(bytes: Buffer, from: number): number {
  let p = from
  while (bytes[p] === SPACE) p++
  return p
}

function endOfPadding(bytes: Buffer, from: number): number {
  const length = bytes.length
  let p = from
  while (p < length && bytes[p] !== QUOTE && bytes[p] !== BACKSLASH && (bytes[p] as number) >= 0x20) p++
  return p
}

/**
 * Matches numbers that differ between frames of one kind: event numbers and token counts. It cannot match
 * inside a JSON string, because the quotes would be escaped there.
 */
const NUMBERS = /(?:,"sequence_number":|[Tt]okenCount":) ?(?=\d)/g

/** A sequence of bytes that all frames of one kind contain. Numbers in it may differ between the frames. */
export class BytesWithNumbers {
  /** The bytes before, between and after the numbers. */
  readonly #pieces: readonly BytePattern[]
  /** Length in bytes of the sequence if every number in it has one digit. */
  readonly #minLength: number
  /** The whole sequence if it contains no number; otherwise undefined. */
  readonly plain: Buffer | undefined

  /** `isPlain`: whether the sequence is known to contain no number. */
  constructor(bytes: Buffer, isPlain = false) {
    const pieces: BytePattern[] = []
    let from = 0
    for (const { index, 0: mark } of isPlain ? [] : bytes.toString('latin1').matchAll(NUMBERS)) {
      const number = index + mark.length
      pieces.push(new BytePattern(bytes.subarray(from, number)))
      from = endOfDigits(bytes, number)
    }
    pieces.push(new BytePattern(bytes.subarray(from)))
    this.#pieces = pieces
    this.#minLength = pieces.reduce((sum, piece) => sum + piece.bytes.length, pieces.length - 1)
    this.plain = pieces.length === 1 ? bytes : undefined
  }

  /** Returns the offset after the sequence if it is at `from`; otherwise −1. */
  endIn(bytes: Buffer, from: number): number {
    if (from + this.#minLength > bytes.length) return -1
    let end = (this.#pieces[0] as BytePattern).endIn(bytes, from)
    for (let i = 1; i < this.#pieces.length && end >= 0; i++) {
      const digits = endOfDigits(bytes, end)
      end = digits > end ? (this.#pieces[i] as BytePattern).endIn(bytes, digits) : -1
    }
    return end
  }
}

/** Returns the offset after the digits at `from`. */
function endOfDigits(bytes: Buffer, from: number): number {
  let at = from
  while (isDigit(bytes[at])) at++
  return at
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}

const WORD = 8

/**
 * View of the buffer that was compared last. Consecutive reads from one connection usually share a buffer.
 */
let viewed: ArrayBufferLike = new ArrayBuffer(0)
let view: DataView = new DataView(viewed)

/**
 * A sequence of bytes that is compared with other bytes. It compares 8 bytes at a time, which takes a third
 * of the time of `Buffer.compare`.
 */
export class BytePattern {
  readonly bytes: Buffer
  readonly #view: DataView

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** Returns the offset after the sequence if it is at `from`; otherwise −1. */
  endIn(bytes: Buffer, from: number): number {
    const size = this.bytes.length
    const end = from + size
    if (end > bytes.length) return -1
    if (size < WORD) {
      for (let i = 0; i < size; i++) if (bytes[from + i] !== this.bytes[i]) return -1
      return end
    }
    const { buffer } = bytes
    if (buffer !== viewed) view = new DataView((viewed = buffer))
    const start = bytes.byteOffset + from
    const last = size - WORD
    for (let i = 0; i < last; i += WORD)
      if (view.getBigInt64(start + i) !== this.#view.getBigInt64(i)) return -1
    // The last word of 8 bytes overlaps the previous one, unless the size is a multiple of 8.
    return view.getBigInt64(start + last) === this.#view.getBigInt64(last) ? end : -1
  }
}
