/** Bytes before the first event that wait for it. */
const MAX_HELD_BYTES = 4_096
/** How long they wait: callers, and what stands between, take a connection that says nothing for dead. */
const MAX_HELD_MS = 5_000

/**
 * Bytes that go to the client next, in one write. Comments before a stream's first event wait for it for a
 * while: an upstream that begins with an error then fails before anything was sent, and another may answer.
 * (`docs/api.md: Events`)
 */
export class OutgoingBytes {
  #pieces: Buffer[] = []
  #bytes = 0
  #sinceMs = 0
  #isHeldBack = true

  /** Adds bytes; `isEvent`: an event has begun, in them or before them. */
  add(bytes: Buffer, isEvent: boolean): void {
    this.#pieces.push(bytes)
    if (!this.#isHeldBack) return
    if (this.#sinceMs === 0) this.#sinceMs = performance.now()
    this.#bytes += bytes.length
    if (isEvent || this.#bytes > MAX_HELD_BYTES) this.#isHeldBack = false
  }

  /** There are bytes that are to be sent now. */
  get isDue(): boolean {
    return !this.#isHeldBack && this.#pieces.length > 0
  }

  /** Once a second: lets go what has waited long enough. */
  tick(nowMs: number): void {
    if (this.#sinceMs > 0 && nowMs - this.#sinceMs >= MAX_HELD_MS) this.release()
  }

  /** Nothing waits for an event any more. */
  release(): void {
    this.#isHeldBack = false
  }

  /** The bytes that are due, which are then gone from here. */
  take(): Buffer | undefined {
    if (!this.isDue) return undefined
    const pieces = this.#pieces
    this.#pieces = []
    return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
  }

  /** Throws away what was not sent. */
  drop(): void {
    this.#pieces = []
  }
}
