import { isUtf8 } from 'node:buffer'
import { dataOf } from './frame-splitter.ts'
import { NumberedBytes } from './numbered-bytes.ts'

/** Text that a frame brings. */
export interface FramePiece {
  /** Index among texts that grow side by side. */
  readonly index: number
  readonly text: string
}

/**
 * Reads the text in a frame's data; undefined if there is none, more than one, or anything else of meaning.
 */
export type PieceReader = (data: string) => FramePiece | undefined

/** Place of a text, within its quotes, in the bytes of a frame that matched. */
export interface TextMatch {
  readonly from: number
  readonly to: number
  /** Number of escapes in it. */
  readonly escapes: number
  /** Number of characters, where each escape stands for one. */
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
/** Characters after a backslash in the escapes that `JSON.stringify` writes, too. */
const COMMON_ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\bfnrt'))
/**
 * Marks before random strings that hide the reply's lengths; the text up to the next quote varies. Other
 * providers put a varying number of spaces before the last brace.
 */
const PADDING = [',"obfuscation":"', ',"p":"'] as const
/** Text that is unlikely in any reply. */
const SENTINEL = 'c7a1f0e2-sentinel'
const MAX_CANDIDATES = 4
const NOT_FOUND = -1

/**
 * Frame of a stream with a placeholder for the text that the model wrote. A frame that equals a parsed one in
 * all other bytes needs no parsing, as it can differ in that text alone, and in the number of the event where
 * events are numbered, whatever the frame's shape and the text.
 */
export class FrameTemplate implements TextMatch {
  /** Index of the text that the frame adds to. */
  readonly index: number
  readonly #head: NumberedBytes
  readonly #tail: NumberedBytes
  /** Bytes after the padding, which may have any length; undefined without padding. */
  readonly #afterPadding: NumberedBytes | undefined
  /** Whether the padding is spaces outside of strings. */
  readonly #isSpaced: boolean
  /**
   * Bytes between the texts of two frames of this kind in a row, which is the usual case and is compared at
   * once.
   */
  readonly #separator: NumberedBytes | undefined
  readonly #headSize: number
  /** Offset at which a frame's head is known to stand, and the offset after that. */
  #headAt = NOT_FOUND
  #headEnd = 0
  from = 0
  to = 0
  escapes = 0
  /** Bytes of the text that continue a character, and whether it has any beyond ASCII or uncommon escapes. */
  #continuations = 0
  #isAscii = true
  #isCommon = true
  /** Offset after the frame that matched. */
  end = 0

  constructor(index: number, head: Buffer, tail: Buffer) {
    this.index = index
    this.#head = new NumberedBytes(head)
    const { before, after, isSpaced } = splitAtPadding(tail)
    this.#tail = new NumberedBytes(before)
    this.#afterPadding = after && new NumberedBytes(after)
    this.#isSpaced = isSpaced
    const hasPadding = after !== undefined && !isSpaced
    this.#headSize = head.length
    this.#separator =
      hasPadding || !this.#head.plain ? undefined : new NumberedBytes(Buffer.concat([tail, head]))
  }

  /** Drops positions, because other bytes follow. */
  newBytes(): void {
    this.#headAt = NOT_FOUND
  }

  /** Whether the frame at `start` is complete and matches. */
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

  /** Whether the bytes between two frames stand at `at`; notes where the head of the second one is. */
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

  /** Whether the text that matched is valid, and written as `JSON.stringify` would. */
  isCopyable(bytes: Buffer): boolean {
    return this.#isCommon && (this.#isAscii || isUtf8(bytes.subarray(this.from, this.to)))
  }

  /** Text of the frame that matched; undefined for an invalid escape. */
  textIn(bytes: Buffer): string | undefined {
    return this.escapes > 0
      ? valueOf(bytes.toString('utf8', this.from - 1, this.to + 1))
      : bytes.toString('utf8', this.from, this.to)
  }

  /** Offset of the text's closing quote; −1 if it is not there or the text is invalid. */
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
 * Creates a template from a parsed frame with this text. The text's position is found by trial: a changed
 * text at the right one changes the parsed result.
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

/** Value of a string literal; undefined for an invalid escape. */
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
