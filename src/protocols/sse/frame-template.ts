import { endOf, NumberedBytes } from './numbered-bytes.ts'
import { dataOf } from './sse.ts'

/** The one text that a frame brings. */
export interface FramePiece {
  /** Of several texts that grow side by side, which. */
  readonly index: number
  readonly text: string
}

/** The text in a frame's data; undefined where there is none, more than one, or anything else to know. */
export type PieceReader = (data: string) => FramePiece | undefined

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const CLOSE_OBJECT = 0x7d
/**
 * Strings of no meaning that hide an answer's lengths; the text between these marks and the next quote
 * varies. Others put a varying number of spaces before the last brace.
 */
const PADDING = [',"obfuscation":"', ',"p":"'] as const
/** A text that no answer is likely to hold. */
const SENTINEL = 'c7a1f0e2-sentinel'
const MAX_CANDIDATES = 4
const NOT_FOUND = -1

/**
 * A frame of a stream with one hole in it: the text that the model wrote. Frames of one stream differ in
 * little else, so a frame whose other bytes are those of a frame that was parsed needs no parsing: what it
 * says can differ in that text alone, and in the number of the event where events are numbered. This holds whatever the shape of the frames is, and whatever the text
 * says.
 */
export class FrameTemplate {
  /** Which text it is that the frame adds to. */
  readonly index: number
  readonly #head: NumberedBytes
  readonly #tail: NumberedBytes
  /** The bytes in which padding ends, which may be of any length; undefined where the frame has none. */
  readonly #afterPadding: NumberedBytes | undefined
  /** Whether the padding is outside of strings, and spaces therefore. */
  readonly #isSpaced: boolean
  /**
   * What lies between two texts where a frame of this kind follows another: most do, and it is compared at
   * once.
   */
  readonly #separator: Buffer | undefined
  /** Bytes of it that belong to the first. */
  readonly #size: number
  /** Where a frame's head is known to stand. */
  #headAt = NOT_FOUND
  /**
   * After `match`: where the text begins and ends, whether it holds escapes, and the offset after the frame.
   */
  from = 0
  to = 0
  escaped = false
  end = 0

  constructor(index: number, head: Buffer, tail: Buffer) {
    this.index = index
    this.#head = new NumberedBytes(head)
    const { before, after, isSpaced } = splitAtPadding(tail)
    this.#tail = new NumberedBytes(before)
    this.#afterPadding = after && new NumberedBytes(after)
    this.#isSpaced = isSpaced
    this.#size = tail.length
    const isNumbered = [this.#head, this.#tail, this.#afterPadding].some((part) => part && !part.plain)
    this.#separator = isNumbered || (after && !isSpaced) ? undefined : Buffer.concat([tail, head])
  }

  /** Other bytes come. */
  newBytes(): void {
    this.#headAt = NOT_FOUND
  }

  /** Whether the frame that begins at `start` is whole and one of this kind. */
  match(bytes: Buffer, start: number): boolean {
    const plain = this.#head.plain
    const from = plain && start === this.#headAt ? start + plain.length : this.#head.endIn(bytes, start)
    if (from < 0 || from >= bytes.length) return false
    const to = this.#textEnd(bytes, from)
    if (to < 0) return false
    if (this.#separator && endOf(bytes, to, this.#separator) > 0) {
      this.from = from
      this.to = to
      this.end = to + this.#size
      this.#headAt = this.end
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

  /** The text of the frame that matched; undefined where an escape is wrong. */
  textIn(bytes: Buffer): string | undefined {
    return this.escaped
      ? valueOf(bytes.toString('utf8', this.from - 1, this.to + 1))
      : bytes.toString('utf8', this.from, this.to)
  }

  /** The closing quote of the text; −1 where it is not in sight or there is something wrong with it. */
  #textEnd(bytes: Buffer, from: number): number {
    const length = bytes.length
    this.escaped = false
    for (let p = from; p < length; p++) {
      const byte = bytes[p] as number
      if (byte === QUOTE) return p
      if (byte < 0x20) return -1
      if (byte === BACKSLASH) {
        this.escaped = true
        p++
      }
    }
    return -1
  }
}

/**
 * Makes a template of a frame that was parsed and brought this piece of text. Where the text lies is found by
 * trying: only a place whose change changes what is read is the right one.
 */
export function learnTemplate(
  frame: Buffer,
  piece: FramePiece,
  read: PieceReader,
): FrameTemplate | undefined {
  if (frame[frame.length - 1] !== LF) return undefined
  const literal = Buffer.from(JSON.stringify(piece.text))
  let at = frame.indexOf(literal)
  for (let places = 0; at >= 0 && places < MAX_CANDIDATES; places++) {
    const head = frame.subarray(0, at + 1)
    const tail = frame.subarray(at + literal.length - 1)
    const data = dataOf(`${head.toString()}${SENTINEL}${tail.toString()}`)
    if (data !== undefined && read(data)?.text === SENTINEL)
      return new FrameTemplate(piece.index, Buffer.from(head), Buffer.from(tail))
    at = frame.indexOf(literal, at + 1)
  }
  return undefined
}

/** A string literal's value; undefined where an escape is wrong. */
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
