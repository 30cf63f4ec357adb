const NOTHING = Buffer.alloc(0)

/** Holds back the end of a response; without it, clients do not accept the response as complete. */
export interface WithheldEnd {
  /** Adds a chunk of the response. Returns the bytes that can be forwarded now. */
  push(chunk: Buffer): Buffer | undefined
  /** Returns the bytes that are still held back; empty if there are none. */
  rest(): Buffer
}

/** Holds back only the last byte, so that audio can be played while it arrives. */
export class WithheldByte implements WithheldEnd {
  #held: Buffer = NOTHING

  push(chunk: Buffer): Buffer | undefined {
    if (chunk.length === 0) return undefined
    const before = this.#held
    this.#held = chunk.subarray(-1)
    const length = before.length + chunk.length - 1
    return length === 0 ? undefined : Buffer.concat([before, chunk.subarray(0, -1)], length)
  }

  rest(): Buffer {
    return this.#held
  }
}

/** Holds back the last chunk, so that large responses need not be copied. */
export class WithheldChunk implements WithheldEnd {
  #held: Buffer = NOTHING

  push(chunk: Buffer): Buffer | undefined {
    if (chunk.length === 0) return undefined
    const before = this.#held
    this.#held = chunk
    return before.length === 0 ? undefined : before
  }

  rest(): Buffer {
    return this.#held
  }
}
