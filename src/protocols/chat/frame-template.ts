import { dataOf } from '../sse.ts'
import { type ChunkFacts, readChunk } from './chunk.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Strings of no meaning that hide an answer's lengths; the text between these marks and the next quote varies. */
const PADDING = [',"obfuscation":"', ',"p":"'] as const
/** A text that no answer is likely to hold. */
const SENTINEL = 'c7a1f0e2-sentinel'
const MAX_PLACES = 4

/**
 * A frame of a stream with one hole in it: the text that the model wrote. Frames of one stream differ in little else, so
 * a frame whose other bytes are those of a frame that was parsed needs no parsing: what it says can differ in that text
 * alone. This holds whatever the shape of the frames is, and whatever the text says.
 */
export class FrameTemplate {
  /** The choice whose text it is. */
  readonly index: number
  readonly #head: Buffer
  readonly #tail: Buffer
  /** What follows the padding, closing quote included; undefined where the frame has none. */
  readonly #afterPadding: Buffer | undefined
  /** After `match`: where the text begins and ends, and whether it holds escapes. */
  from = 0
  to = 0
  escaped = false

  constructor(index: number, head: Buffer, tail: Buffer) {
    this.index = index
    this.#head = head
    const { before, after } = splitAtPadding(tail)
    this.#tail = before
    this.#afterPadding = after
  }

  /** The end of the frame that begins at `start`, if it is whole and one of this kind; else 0. */
  match(bytes: Buffer, start: number): number {
    const from = start + this.#head.length
    if (from >= bytes.length || bytes.compare(this.#head, 0, this.#head.length, start, from) !== 0) return 0
    const to = this.#textEnd(bytes, from)
    if (to < 0) return 0
    const tailEnd = to + this.#tail.length
    if (tailEnd > bytes.length || bytes.compare(this.#tail, 0, this.#tail.length, to, tailEnd) !== 0) return 0
    this.from = from
    this.to = to
    return this.#afterPadding ? endOfPadding(bytes, tailEnd, this.#afterPadding) : tailEnd
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
 * Makes a template of a frame that was parsed: one choice, one piece of text, and nothing else to know. Where the text
 * lies is found by trying: only a place whose change changes that piece and no other is the right one.
 */
export function learnTemplate(frame: Buffer, facts: ChunkFacts): FrameTemplate | undefined {
  const choice = facts.choices[0]
  const piece = choice?.pieces[0]
  if (!choice || piece === undefined || facts.choices.length > 1 || choice.pieces.length > 1) return undefined
  if (facts.usage || facts.isError || frame[frame.length - 1] !== 0x0a) return undefined
  const literal = Buffer.from(JSON.stringify(piece))
  let at = frame.indexOf(literal)
  for (let places = 0; at >= 0 && places < MAX_PLACES; places++) {
    const head = frame.subarray(0, at + 1)
    const tail = frame.subarray(at + literal.length - 1)
    if (holdsThePiece(head, tail))
      return new FrameTemplate(choice.index, Buffer.from(head), Buffer.from(tail))
    at = frame.indexOf(literal, at + 1)
  }
  return undefined
}

function holdsThePiece(head: Buffer, tail: Buffer): boolean {
  const data = dataOf(`${head.toString()}${SENTINEL}${tail.toString()}`)
  const facts = data === undefined ? undefined : readChunk(data)
  return facts?.choices.length === 1 && facts.choices[0]?.pieces.join() === SENTINEL
}

function splitAtPadding(tail: Buffer): { before: Buffer; after: Buffer | undefined } {
  for (const mark of PADDING) {
    const at = tail.indexOf(mark)
    if (at < 0) continue
    const from = at + mark.length
    const quote = tail.indexOf(QUOTE, from)
    if (tail.subarray(from, quote).includes(BACKSLASH)) continue
    return { before: tail.subarray(0, from), after: tail.subarray(quote) }
  }
  return { before: tail, after: undefined }
}

function endOfPadding(bytes: Buffer, from: number, after: Buffer): number {
  const length = bytes.length
  let p = from
  while (p < length && bytes[p] !== QUOTE && bytes[p] !== BACKSLASH && (bytes[p] as number) >= 0x20) p++
  const end = p + after.length
  return end <= length && bytes.compare(after, 0, after.length, p, end) === 0 ? end : 0
}
