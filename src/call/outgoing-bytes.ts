/**
 * Maximum number of bytes before a stream's first event that are held back. The first events of a response repeat
 * its instructions and tools.
 */
const MAX_HELD_BYTES = 1_048_576

/**
 * Collects bytes for the client's next write. Comments and leading events, which say only that an answer begins, are
 * held until the next event. If that is an error, nothing has been sent, and another upstream can be tried. `docs/api.md:
 * Events`.
 */
export class OutgoingBytes {
  /**
   * The list is emptied, never replaced: in a long call it is in V8's old generation, and an abandoned list
   * would keep its chunks in memory until a full collection.
   */
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #isHeldBack = true

  /** Adds bytes. `isEvent`: whether an event other than leading ones begins in these bytes or has begun before. */
  add(bytes: Buffer, isEvent: boolean): void {
    this.#chunks.push(bytes)
    if (!this.#isHeldBack) return
    this.#bytes += bytes.length
    if (isEvent || this.#bytes > MAX_HELD_BYTES) this.#isHeldBack = false
  }

  /** Whether there are bytes that must be sent to the client now. */
  get isDue(): boolean {
    return !this.#isHeldBack && this.#chunks.length > 0
  }

  /** Makes all bytes due, even if no event has arrived yet. */
  release(): void {
    this.#isHeldBack = false
  }

  /** Removes and returns the bytes that are due. */
  take(): Buffer | undefined {
    if (!this.isDue) return undefined
    const chunks = this.#chunks.splice(0)
    return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
  }

  /** Discards the bytes that were not sent. */
  drop(): void {
    this.#chunks.length = 0
  }
}
