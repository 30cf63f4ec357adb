const FIRST_BYTES = 2_048
/** Half of the pool's size: what Node.js takes from it is smaller. */
const POOLED_BYTES = 4_096

/** Takes memory for bytes that are about to be kept; false if none is left. */
export type TakeMemory = (bytes: number) => boolean

/**
 * Bytes that are added piece by piece. Pieces are copied, because a small piece may be a part of a large buffer
 * that would otherwise stay in memory.
 */
export class GrowingBytes {
  #buffer: Buffer | undefined
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Bytes of memory that are taken. */
  get capacity(): number {
    return this.#buffer?.length ?? 0
  }

  /** Adds a piece. Returns false and adds nothing if there is no memory for it. */
  add(piece: Buffer, take: TakeMemory): boolean {
    const length = this.#length + piece.length
    if (length > this.capacity && !this.#grow(length, take)) return false
    this.#buffer?.set(piece, this.#length)
    this.#length = length
    return true
  }

  /** Whether these bytes have this piece at a position. */
  hasAt(position: number, piece: Buffer): boolean {
    const end = position + piece.length
    return (
      end <= this.#length &&
      (piece.length === 0 || this.#buffer?.compare(piece, 0, piece.length, position, end) === 0)
    )
  }

  /** The bytes so far. They are valid until the next change. */
  get bytes(): Buffer {
    return this.#buffer?.subarray(0, this.#length) ?? Buffer.alloc(0)
  }

  #grow(length: number, take: TakeMemory): boolean {
    const before = this.capacity
    // Many answers come in one piece.
    const capacity = before === 0 ? Math.max(FIRST_BYTES, length) : 2 ** Math.ceil(Math.log2(length))
    if (!take(capacity - before)) return false
    // Small ones come from the pool, which is several times faster.
    const grown = capacity < POOLED_BYTES ? Buffer.allocUnsafe(capacity) : Buffer.allocUnsafeSlow(capacity)
    if (this.#buffer) grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
    return true
  }
}
