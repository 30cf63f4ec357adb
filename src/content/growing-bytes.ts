const FIRST_BYTES = 2_048
/** Buffers of fewer bytes come from Node.js's pool of preallocated memory. */
const POOLED_BYTES = 4_096

/** Reserves memory for bytes that are about to be stored; returns false if none is left. */
export type ReserveMemory = (bytes: number) => boolean

/**
 * Collects bytes piece by piece. Each piece is copied, because a small piece may belong to a large buffer,
 * which would otherwise stay in memory.
 */
export class GrowingBytes {
  #buffer: Buffer | undefined
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Bytes of memory that are allocated. */
  get capacity(): number {
    return this.#buffer?.length ?? 0
  }

  /** Adds a piece. Returns false and adds nothing if there is no memory for it. */
  add(piece: Buffer, take: ReserveMemory): boolean {
    const length = this.#length + piece.length
    if (length > this.capacity && !this.#grow(length, take)) return false
    this.#buffer?.set(piece, this.#length)
    this.#length = length
    return true
  }

  /** Whether the bytes at this position equal the piece. */
  hasAt(position: number, piece: Buffer): boolean {
    const end = position + piece.length
    return (
      end <= this.#length &&
      (piece.length === 0 || this.#buffer?.compare(piece, 0, piece.length, position, end) === 0)
    )
  }

  /** All bytes so far. The buffer is valid only until the next piece is added. */
  get bytes(): Buffer {
    return this.#buffer?.subarray(0, this.#length) ?? Buffer.alloc(0)
  }

  #grow(length: number, take: ReserveMemory): boolean {
    const before = this.capacity
    // The first allocation is exact if it is large, because many answers come in one piece.
    const capacity = before === 0 ? Math.max(FIRST_BYTES, length) : 2 ** Math.ceil(Math.log2(length))
    if (!take(capacity - before)) return false
    // Allocating small buffers from the pool is several times faster.
    const grown = capacity < POOLED_BYTES ? Buffer.allocUnsafe(capacity) : Buffer.allocUnsafeSlow(capacity)
    if (this.#buffer) grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
    return true
  }
}
