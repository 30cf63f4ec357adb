import type { ReplyEvent } from './reply.ts'
import type { TextMatch } from './sse/frame-template.ts'

/**
 * Event of a stream with a text whose JSON every dialect writes alike, so that encoders copy it as it came.
 * It refers to the bytes that were pushed, and holds until the next are.
 */
export class CopiedText {
  readonly kind: 'text' | 'thinking' | 'tool-input'
  /** Number of the part. */
  readonly index: number
  readonly bytes: Buffer
  /** Offsets of the text within its quotes. */
  readonly from: number
  readonly to: number
  /** Number of escapes in it, each of one character in two bytes. */
  readonly escapes: number
  readonly codePoints: number
  #text: string | undefined

  constructor(kind: CopiedText['kind'], index: number, bytes: Buffer, match: TextMatch) {
    this.kind = kind
    this.index = index
    this.bytes = bytes
    this.from = match.from
    this.to = match.to
    this.escapes = match.escapes
    this.codePoints = match.codePoints
  }

  get text(): string {
    return (this.#text ??= this.#decode())
  }

  /** The same as an event that lasts. */
  decoded(): ReplyEvent {
    const { kind, index, text } = this
    return { kind, index, text }
  }

  #decode(): string {
    if (this.escapes === 0) return this.bytes.toString('utf8', this.from, this.to)
    return JSON.parse(this.bytes.toString('utf8', this.from - 1, this.to + 1)) as string
  }
}

/** Bytes of a frame around the text that it brings. */
export interface TextFrame {
  /** Up to the text's first character, its quote included. */
  readonly head: Buffer
  /** From its closing quote on. */
  readonly tail: Buffer
}

/** Makes the frame of the texts before and after the JSON of its text. */
export function frameOf(before: string, after: string): TextFrame {
  return { head: Buffer.from(`${before}"`), tail: Buffer.from(`"${after}`) }
}
