/**
 * Chunks of fewer bytes than `SMALL_CHUNK_BYTES` are small. `MAX_SMALL_CHUNKS` small chunks in a row are
 * merged.
 */
const SMALL_CHUNK_BYTES = 512
const MAX_SMALL_CHUNKS = 512

/**
 * List of chunks that takes little more memory than the bytes in it. Single-byte chunks stored as objects
 * would take a hundred times as much. The chunks of a short list are not merged.
 */
export class ChunkList {
  #pieces: Buffer[] = []
  #length = 0
  /** Number of small chunks in a row at the end of the list. */
  #smallChunks = 0

  get length(): number {
    return this.#length
  }

  add(chunk: Buffer): void {
    this.#pieces.push(chunk)
    this.#length += chunk.length
    this.#smallChunks = chunk.length < SMALL_CHUNK_BYTES ? this.#smallChunks + 1 : 0
    if (this.#smallChunks < MAX_SMALL_CHUNKS) return
    this.#pieces.push(Buffer.concat(this.#pieces.splice(-MAX_SMALL_CHUNKS)))
    this.#smallChunks = 0
  }

  /** Returns the first `size` bytes, or all if there are fewer. */
  head(size: number): Buffer {
    let count = 0
    for (let length = 0; count < this.#pieces.length && length < size; count++)
      length += (this.#pieces[count] as Buffer).length
    return Buffer.concat(this.#pieces.slice(0, count)).subarray(0, size)
  }

  /** Returns the last `size` bytes, or all if there are fewer. */
  tail(size: number): Buffer {
    let tail: Buffer = Buffer.alloc(0)
    for (let i = this.#pieces.length - 1; i >= 0 && tail.length < size; i--) {
      tail = Buffer.concat([this.#pieces[i] as Buffer, tail])
    }
    return tail.subarray(Math.max(0, tail.length - size))
  }

  /** Returns all bytes in one piece and empties the list. */
  take(): Buffer {
    const bytes = adjacent(this.#pieces, this.#length) ?? Buffer.concat(this.#pieces, this.#length)
    this.#pieces = []
    this.#length = 0
    this.#smallChunks = 0
    return bytes
  }
}

/** Returns the bytes of pieces that lie one after the other in memory, without a copy; otherwise undefined. */
function adjacent(pieces: readonly Buffer[], length: number): Buffer | undefined {
  const [first] = pieces
  if (!first) return undefined
  let end = first.byteOffset
  for (const piece of pieces) {
    if (piece.buffer !== first.buffer || piece.byteOffset !== end) return undefined
    end += piece.length
  }
  return pieces.length === 1 ? first : Buffer.from(first.buffer, first.byteOffset, length)
}
