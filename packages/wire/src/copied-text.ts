import { codePointsIn } from './citation.ts'
import type { ReplyEvent } from './reply.ts'
import type { TextMatch } from './sse/frame-template.ts'

/** Part to which a text is appended. */
export interface CopiedPart {
  readonly kind: 'text' | 'thinking' | 'tool-input'
  /** Number of the part. */
  readonly index: number
}

/**
 * Event with text of one part, from one frame or several consecutive ones, whose JSON is the same in every
 * dialect, so that encoders can copy its bytes. It refers to the pushed bytes and is valid until the next
 * push.
 */
export class CopiedText implements CopiedPart {
  readonly kind: CopiedPart['kind']
  readonly index: number
  readonly bytes: Buffer
  /** Offsets at which the text of each frame begins and ends, without its quotes: two per frame. */
  readonly spans: number[] = []
  /** Number of bytes in all spans. */
  size = 0
  /** Number of escape sequences in them; each is one character in two bytes. */
  escapes = 0
  codePoints = 0

  constructor(kind: CopiedPart['kind'], index: number, bytes: Buffer, match: TextMatch) {
    this.kind = kind
    this.index = index
    this.bytes = bytes
    this.add(match)
  }

  /** Adds the text of the next frame, from the same bytes. */
  add({ from, to, escapes, codePoints }: TextMatch): void {
    this.spans.push(from, to)
    this.size += to - from
    this.escapes += escapes
    this.codePoints += codePoints
  }

  /** Number of frames. */
  get frames(): number {
    return this.spans.length / 2
  }

  /** Text of all frames. */
  get text(): string {
    const { spans } = this
    let text = ''
    for (let i = 0; i < spans.length; i += 2) text += this.#textAt(i)
    return text
  }

  /** Removes the first frame's text and returns it as an event that does not refer to the bytes. */
  takeFirst(): ReplyEvent {
    const { kind, index } = this
    const text = this.#textAt(0)
    const [from = 0, to = 0] = this.spans.splice(0, 2)
    this.size -= to - from
    this.escapes -= to - from - Buffer.byteLength(text)
    this.codePoints -= codePointsIn(text)
    return { kind, index, text }
  }

  #textAt(i: number): string {
    const from = this.spans[i] as number
    const to = this.spans[i + 1] as number
    return textOf(this.bytes, { from, to, escapes: this.escapes })
  }
}

/** Decodes the text of a frame. */
export function textOf(bytes: Buffer, { from, to, escapes }: Omit<TextMatch, 'codePoints'>): string {
  if (escapes === 0) return bytes.toString('utf8', from, to)
  return JSON.parse(bytes.toString('utf8', from - 1, to + 1)) as string
}

/** Bytes of a frame around its text. */
export interface TextFrame {
  /** From the start of the frame to the opening quote of the text. */
  readonly head: Buffer
  /** From the closing quote of the text to the end of the frame. */
  readonly tail: Buffer
  /** Bytes between the texts of two consecutive frames. */
  readonly between: Buffer
}

/** Creates a frame from the texts before and after the JSON of its text. */
export function frameOf(before: string, after: string): TextFrame {
  const head = `${before}"`
  const tail = `"${after}`
  return { head: Buffer.from(head), tail: Buffer.from(tail), between: Buffer.from(tail + head) }
}
