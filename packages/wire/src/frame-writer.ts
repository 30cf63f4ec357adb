import type { CopiedText, TextFrame } from './copied-text.ts'

/**
 * Buffer in which frames are joined within one call. It is large enough for most conversions of a 64 KiB
 * read.
 */
const SCRATCH = Buffer.allocUnsafeSlow(262_144)
/** Maximum UTF-8 bytes of one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3
/** Texts up to this size are copied faster by a loop than by a call. */
const MAX_LOOP_BYTES = 32

/**
 * Joins frames as UTF-8. Texts are not joined as strings first: one character beyond Latin-1 would make the
 * whole string two bytes wide, which takes several times as long to encode. All writers share one buffer, so
 * that only one may be in use at a time, from its first write to `take`, without an await in between.
 */
export class FrameWriter {
  readonly #full: Buffer[] = []
  #at = 0

  /** Discards what a failed writer has left in the buffer. */
  clear(): void {
    this.#full.length = 0
    this.#at = 0
  }

  /** Writes a text. */
  text(text: string): void {
    const max = text.length * MAX_BYTES_PER_UNIT
    if (!this.#fits(max)) this.#full.push(Buffer.from(text))
    else this.#at += SCRATCH.write(text, this.#at)
  }

  /** Writes the bytes of a source between two offsets. */
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

  /** Writes copied texts unchanged, each into a frame. */
  copied(frame: TextFrame, { bytes, spans, size, frames }: CopiedText): void {
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

  /** Writes one copied text unchanged into its frame; `i` is the index of its span. */
  copiedAt({ head, tail }: TextFrame, bytes: Buffer, spans: readonly number[], i: number): void {
    this.bytes(head)
    this.bytes(bytes, spans[i], spans[i + 1])
    this.bytes(tail)
  }

  /** Returns everything that was written and starts again. The result belongs to the caller. */
  take(): Buffer {
    const last = Buffer.from(SCRATCH.subarray(0, this.#at))
    this.#at = 0
    return this.#full.length === 0 ? last : Buffer.concat([...this.#full.splice(0), last])
  }

  /** Makes room for this many bytes. Returns false if they are more than the buffer can hold. */
  #fits(size: number): boolean {
    if (size <= SCRATCH.length - this.#at) return true
    if (this.#at > 0) this.#full.push(Buffer.from(SCRATCH.subarray(0, this.#at)))
    this.#at = 0
    return size <= SCRATCH.length
  }
}
