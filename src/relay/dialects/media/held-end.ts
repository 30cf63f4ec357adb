const NOTHING = Buffer.alloc(0)

/** Holds back the end of a response, without which no client takes it for complete. */
export interface HeldEnd {
  /** The bytes that go on with this chunk. */
  push(chunk: Buffer): Buffer | undefined
  /** The bytes that are held; none where none came. */
  rest(): Buffer
}

/** Holds the last byte alone, for sound that is heard while it comes. */
export class HeldByte implements HeldEnd {
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

/** Holds the last chunk, so that large responses are not copied. */
export class HeldChunk implements HeldEnd {
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
