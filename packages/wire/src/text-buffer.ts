import type { CopyableText } from './frame-writer.ts'

const INITIAL_BYTES = 256
/** Size in bytes up to which a buffer that is full is replaced by one of four times the size. */
const SMALL_BYTES = 4_096
/**
 * Maximum number of bytes of text that are kept. Further bytes are only counted, which is exact enough for
 * such a long reply.
 */
const MAX_BYTES = 8 * 1024 * 1024
/** Size in bytes up to which a loop copies text faster than a function call does. */
const MAX_LOOP_BYTES = 48
const BACKSLASH = 0x5c
/** The byte for which a one-letter escape sequence such as `\n` stands, by the code of the letter. */
const UNESCAPED = Buffer.alloc(128)
for (const letter of '"\\bfnrt')
  UNESCAPED[letter.charCodeAt(0)] = (JSON.parse(`"\\${letter}"`) as string).charCodeAt(0)

/** Texts in JSON bytes. All their escape sequences must have one letter. */
type JsonTexts = Pick<CopyableText, 'bytes' | 'spans' | 'size' | 'escapes'>

/** A text that grows in small pieces, kept as UTF-8 in one buffer. */
export class TextBuffer {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #length = 0

  /** Number of stored bytes. */
  get length(): number {
    return this.#length
  }

  /** Adds the UTF-8 bytes of `source` between two offsets. */
  append(source: Uint8Array, from: number, to: number): void {
    const length = this.#length
    const end = length + to - from
    if (end > MAX_BYTES) return
    if (end > this.#bytes.length) this.#grow(end)
    const bytes = this.#bytes
    if (to - from > MAX_LOOP_BYTES) bytes.set(source.subarray(from, to), length)
    else for (let i = from, at = length; i < to; i++, at++) bytes[at] = source[i] as number
    this.#length = end
  }

  /** Adds a text. Returns its number of UTF-8 bytes. */
  add(text: string): number {
    const { length } = text
    if (
      length <= MAX_LOOP_BYTES &&
      this.#length + length <= this.#bytes.length &&
      this.#addAscii(text, length)
    )
      return length
    const bytes = Buffer.from(text)
    this.append(bytes, 0, bytes.length)
    return bytes.length
  }

  #addAscii(text: string, length: number): boolean {
    const bytes = this.#bytes
    const at = this.#length
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f) return false
      bytes[at + i] = code
    }
    this.#length = at + length
    return true
  }

  /**
   * Adds texts that are given as JSON bytes. Returns their number of UTF-8 bytes after decoding the escape
   * sequences.
   */
  addCopied({ bytes: source, spans, size, escapes }: JsonTexts): number {
    let at = this.#length
    const max = at + size
    if (max > MAX_BYTES) return size - escapes
    if (max > this.#bytes.length) this.#grow(max)
    const bytes = this.#bytes
    for (let i = 0; i < spans.length; i += 2) {
      const from = spans[i] as number
      const to = spans[i + 1] as number
      if (escapes === 0 && to - from > MAX_LOOP_BYTES) {
        at += source.copy(bytes, at, from, to)
        continue
      }
      for (let k = from; k < to; k++) {
        const byte = source[k] as number
        bytes[at++] = byte === BACKSLASH ? (UNESCAPED[source[++k] as number] as number) : byte
      }
    }
    this.#length = at
    return size - escapes
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.#length)
  }

  #grow(needed: number): void {
    const size = this.#bytes.length * (this.#bytes.length < SMALL_BYTES ? 4 : 2)
    const larger = Buffer.allocUnsafeSlow(Math.min(MAX_BYTES, Math.max(needed, size)))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
