/** Chunks below this many bytes are small, and so many of them in a row are made one. */
const SMALL_CHUNK_BYTES = 512
const MAX_SMALL_CHUNKS = 512

/**
 * Bytes gathered from chunks of any size in little more memory than they have: whoever sends single bytes
 * would otherwise make us keep an object for each, a hundred times its size. Keeps the chunks themselves
 * where they are few.
 */
export class ChunkList {
  #pieces: Buffer[] = []
  #length = 0
  /** Small chunks at the end, in a row. */
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

  /** The first so many bytes, or all of them where there are fewer. */
  head(size: number): Buffer {
    let count = 0
    for (let length = 0; count < this.#pieces.length && length < size; count++)
      length += (this.#pieces[count] as Buffer).length
    return Buffer.concat(this.#pieces.slice(0, count)).subarray(0, size)
  }

  /** The last so many bytes, or all of them where there are fewer. */
  tail(size: number): Buffer {
    let tail: Buffer = Buffer.alloc(0)
    for (let i = this.#pieces.length - 1; i >= 0 && tail.length < size; i--) {
      tail = Buffer.concat([this.#pieces[i] as Buffer, tail])
    }
    return tail.subarray(Math.max(0, tail.length - size))
  }

  /** All of them, in one piece; nothing is left. */
  take(): Buffer {
    const [only] = this.#pieces
    const bytes = only && this.#pieces.length === 1 ? only : Buffer.concat(this.#pieces, this.#length)
    this.#pieces = []
    this.#length = 0
    this.#smallChunks = 0
    return bytes
  }
}
