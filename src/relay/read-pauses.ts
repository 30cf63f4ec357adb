import type { UpstreamFlow } from './upstream-flow.ts'

/**
 * Bits of the reasons not to read: the hold is not durable, tokens are counted, the client reads slowly,
 * other calls have their turn.
 */
const BITS = { hold: 1, count: 2, client: 4, turn: 8 }
/**
 * Milliseconds of work after which other calls have their turn. Node reads up to 32 chunks of a connection,
 * two megabytes, before it looks at the next one.
 */
const MAX_WORK_MS = 4

/** Reason not to read an upstream for the moment. */
type PauseReason = keyof typeof BITS

/** Reasons not to read an upstream. It is read while there are none. */
export class ReadPauses {
  readonly #upstream: Pick<UpstreamFlow, 'pause' | 'resume'>
  #reasons = 0
  #isOver = false
  #workMs = 0

  constructor(upstream: Pick<UpstreamFlow, 'pause' | 'resume'>) {
    this.#upstream = upstream
  }

  /** Whether there is any reason not to read. */
  get isAny(): boolean {
    return this.#reasons !== 0
  }

  has(reason: PauseReason): boolean {
    return (this.#reasons & BITS[reason]) !== 0
  }

  /** Adds a reason, and stops the reading. */
  begin(reason: PauseReason): void {
    this.#reasons |= BITS[reason]
    this.apply()
  }

  /** Removes a reason, and reads on if it was the last. */
  end(reason: PauseReason): void {
    this.remove(reason)
    this.apply()
  }

  /** Removes a reason; the reading stays as it is until `apply`. */
  remove(reason: PauseReason): void {
    this.#reasons &= ~BITS[reason]
  }

  /** Reads on or stops, as the reasons say. */
  apply(): void {
    if (this.#isOver || this.#reasons === 0) this.#upstream.resume()
    else this.#upstream.pause()
  }

  /** Notes work on what was read; after too much of it, reads on in the next turn of the event loop. */
  noteWork(ms: number): void {
    this.#workMs += ms
    if (this.#workMs < MAX_WORK_MS || this.#isOver) return
    this.#workMs = 0
    this.begin('turn')
    setImmediate(() => {
      if (!this.#isOver) this.end('turn')
    })
  }

  /** Reads on whatever the reasons: what still comes is discarded. */
  discardRest(): void {
    this.#isOver = true
    this.apply()
  }
}
