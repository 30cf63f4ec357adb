import { LOOP_TURNS, MAX_TURN_MS, type SharedTurns } from '../limits/shared-turns.ts'
import type { UpstreamFlow } from './upstream-flow.ts'

/**
 * Bits of the reasons not to read: the hold is not durable, tokens are counted, the client reads slowly,
 * memory is short, other calls have their turn.
 */
const BITS = { hold: 1, count: 2, client: 4, turn: 8, memory: 16 }

/** Reason not to read an upstream for the moment. */
type PauseReason = keyof typeof BITS

/** Reasons not to read an upstream. It is read while there are none. */
export class ReadPauses {
  readonly #upstream: Pick<UpstreamFlow, 'pause' | 'resume'>
  readonly #turns: SharedTurns
  #reasons = 0
  #isOver = false
  #workMs = 0

  constructor(upstream: Pick<UpstreamFlow, 'pause' | 'resume'>, turns = LOOP_TURNS) {
    this.#upstream = upstream
    this.#turns = turns
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

  /**
   * Notes work on what was read. A response that has had a turn's worth of it is a large one: it shares the
   * turns of the event loop with the others from there on.
   */
  noteWork(ms: number): void {
    this.#workMs += ms
    const isUsedUp = this.#turns.note(ms)
    if (!isUsedUp || this.#workMs < MAX_TURN_MS || this.#isOver || this.has('turn')) return
    this.begin('turn')
    this.#turns.wait(() => {
      if (!this.#isOver) this.end('turn')
    })
  }

  /** Reads on whatever the reasons: what still comes is discarded. */
  discardRest(): void {
    this.#isOver = true
    this.apply()
  }
}
