import { codePointsIn, type ReplyEvent } from './reply.ts'
import type { FrameTextMatch } from './sse/frame-template.ts'

/**
 * Buffer in which frames are joined. It is large enough for most conversions of the 64 KiB that are read at
 * once.
 */
const SCRATCH = Buffer.allocUnsafeSlow(262_144)
/** Maximum number of UTF-8 bytes of one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3
/** Size in bytes up to which a loop copies text faster than a function call does. */
const MAX_LOOP_BYTES = 32

/**
 * Joins frames as UTF-8. They are not joined as strings first, because a single character beyond Latin-1
 * would make the whole string two bytes wide, and encoding would take several times as long. All writers
 * share one buffer. Therefore only one may be used at a time, from its first write to `take`, without an
 * await in between.
 */
export class FrameWriter {
  readonly #full: Buffer[] = []
  #at = 0

  /** Discards what a writer that failed has left in the buffer. */
  clear(): void {
    this.#full.length = 0
    this.#at = 0
  }

  /** Adds a text to the frames that are being joined. */
  text(text: string): void {
    const max = text.length * MAX_BYTES_PER_UNIT
    if (!this.#fits(max)) this.#full.push(Buffer.from(text))
    else this.#at += SCRATCH.write(text, this.#at)
  }

  /** Writes the bytes of `source` between two offsets. */
  bytes(source: Buffer, from = 0, to = source.length): void {
    const size = to - from
    if (!this.#fits(size)) {
      this.#full.push(Buffer.from(source.subarray(from, to)))
      return
    }
    let at = this.#at
    this.#at = at + size
    if (size <= MAX_LOOP_BYTES) for (let i = from; i < to; i++) SCRATCH[at++] = source[i] as number
    else if (size === source.length) SCRATCH.set(source, at)
    else source.copy(SCRATCH, at, from, to)
  }

  /** Writes each text of the event inside its own frame. The bytes of the texts are copied unchanged. */
  copied(frame: TextFrame, { bytes, spans, size, frames }: CopyableText): void {
    const { head, tail, between } = frame
    if (!this.#fits(size + frames * between.length)) {
      for (let i = 0; i < spans.length; i += 2) this.copiedAt(frame, bytes, spans, i)
      return
    }
    SCRATCH.set(head, this.#at)
    let at = this.#at + head.length
    for (let i = 0; i < spans.length; i += 2) {
      if (i > 0) {
        SCRATCH.set(between, at)
        at += between.length
      }
      const from = spans[i] as number
      const to = spans[i + 1] as number
      if (to - from > MAX_LOOP_BYTES) bytes.copy(SCRATCH, at, from, to)
      else for (let k = from, end = at; k < to; k++, end++) SCRATCH[end] = bytes[k] as number
      at += to - from
    }
    SCRATCH.set(tail, at)
    this.#at = at + tail.length
  }

  /** Writes one text inside a frame. `i` is the index in `spans` of the offset at which the text begins. */
  copiedAt({ head, tail }: TextFrame, bytes: Buffer, spans: readonly number[], i: number): void {
    this.bytes(head)
    this.bytes(bytes, spans[i], spans[i + 1])
    this.bytes(tail)
  }

  /** Returns everything that was written, and begins again. The result is not changed later. */
  take(): Buffer {
    const last = Buffer.from(SCRATCH.subarray(0, this.#at))
    this.#at = 0
    return this.#full.length === 0 ? last : Buffer.concat([...this.#full.splice(0), last])
  }

  /** Makes room for this many bytes. Returns false if they do not fit even into the empty buffer. */
  #fits(size: number): boolean {
    if (size <= SCRATCH.length - this.#at) return true
    if (this.#at > 0) this.#full.push(Buffer.from(SCRATCH.subarray(0, this.#at)))
    this.#at = 0
    return size <= SCRATCH.length
  }
}

/** The part of a reply to which a copied text is appended. */
export interface CopyablePart {
  readonly kind: 'text' | 'thinking' | 'tool-input'
  /** Index of the part in the reply. */
  readonly index: number
}

/**
 * Event with text of one part, from one frame or several consecutive ones. The JSON of this text is the same
 * in every protocol, so encoders can copy its bytes. The event refers to the pushed bytes and is valid until
 * the next push.
 */
export class CopyableText implements CopyablePart {
  readonly kind: CopyablePart['kind']
  readonly index: number
  readonly bytes: Buffer
  /** For each frame, the offsets at which its text begins and ends, without quotes. */
  readonly spans: number[] = []
  /** Total number of bytes of the texts in `spans`. */
  size = 0
  /** Number of escape sequences in all spans; each has two bytes and stands for one character. */
  escapes = 0
  codePoints = 0

  constructor(kind: CopyablePart['kind'], index: number, bytes: Buffer, match: FrameTextMatch) {
    this.kind = kind
    this.index = index
    this.bytes = bytes
    this.add(match)
  }

  /** Adds the text of the next frame, whose offsets must refer to the same bytes. */
  add({ from, to, escapes, codePoints }: FrameTextMatch): void {
    this.spans.push(from, to)
    this.size += to - from
    this.escapes += escapes
    this.codePoints += codePoints
  }

  /** Number of frames from which texts were added. */
  get frames(): number {
    return this.spans.length / 2
  }

  get text(): string {
    const { spans } = this
    let text = ''
    for (let i = 0; i < spans.length; i += 2) text += this.#textAt(i)
    return text
  }

  /** Removes the text of the first frame, and returns it as an event that does not refer to `bytes`. */
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
    return decodeFrameText(this.bytes, { from, to, escapes: this.escapes })
  }
}

export function decodeFrameText(
  bytes: Buffer,
  { from, to, escapes }: Omit<FrameTextMatch, 'codePoints'>,
): string {
  if (escapes === 0) return bytes.toString('utf8', from, to)
  return JSON.parse(bytes.toString('utf8', from - 1, to + 1)) as string
}

/** The bytes of a frame before and after its text. */
export interface TextFrame {
  /** From the start of the frame to the opening quote of the text. */
  readonly head: Buffer
  /** From the closing quote of the text to the end of the frame. */
  readonly tail: Buffer
  /** Bytes between the texts of two consecutive frames: `tail` and `head`. */
  readonly between: Buffer
}

/** Creates a frame from what comes before and after the text's JSON string. */
export function textFrameOf(before: string, after: string): TextFrame {
  const head = `${before}"`
  const tail = `"${after}`
  return { head: Buffer.from(head), tail: Buffer.from(tail), between: Buffer.from(tail + head) }
}
