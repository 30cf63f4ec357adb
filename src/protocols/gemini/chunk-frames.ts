/** Frames of a stream's chunks: events, or the elements of one array. */
export class ChunkFrames {
  readonly isArray: boolean
  #hasChunks = false

  constructor(isArray: boolean) {
    this.isArray = isArray
  }

  frame(chunk: string): string {
    if (!this.isArray) return `data: ${chunk}\r\n\r\n`
    const before = this.#hasChunks ? ',\r\n' : '['
    this.#hasChunks = true
    return before + chunk
  }

  /** Frame that ends the stream. */
  last(chunk: string): string {
    return this.isArray ? `${this.frame(chunk)}]` : this.frame(chunk)
  }
}
