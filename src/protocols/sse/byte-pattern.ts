const WORD = 8

/** View of the buffer that was compared last: the reads of one connection after the other share one. */
let viewed: ArrayBufferLike = new ArrayBuffer(0)
let view: DataView = new DataView(viewed)

/**
 * Bytes that are looked for in others; in words, which takes a third as long as a call of `Buffer.compare`.
 */
export class BytePattern {
  readonly bytes: Buffer
  readonly #view: DataView

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** The offset after these bytes, if they are what stands at `from`; else −1. */
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
    // The last word overlaps the one before, unless the size is a multiple of a word.
    return view.getBigInt64(start + last) === this.#view.getBigInt64(last) ? end : -1
  }
}
