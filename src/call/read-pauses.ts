import { TURN_BUDGET, MAX_TURN_MS, type TurnBudget } from '../limits/event-loop.ts'
import type { UpstreamFlow } from './upstream-flow.ts'

/**
 * A bit for each reason to pause reading from the upstream: the hold (reserved quota) is not durable, tokens
 * are being counted, the client reads slowly, other calls have their turn, memory is short, the stream
 * is being checked.
 */
const BITS = { hold: 1, count: 2, client: 4, turn: 8, memory: 16, check: 32 }
/** The reasons that lie with the client: it reads slowly, or the memory of its user is short. */
const OF_CLIENT = BITS.client | BITS.memory
/** Part of its time for which a response may be paused for reasons of the client before its end may follow from that. */
const MAX_PAUSED_PART = 1 / 10

type PauseReason = keyof typeof BITS

/**
 * The current reasons to pause reading from an upstream. While there are none, the upstream's response is
 * read.
 */
export class ReadPauses {
  readonly #upstream: Pick<UpstreamFlow, 'pause' | 'resume'>
  readonly #turns: TurnBudget
  readonly #now: () => number
  readonly #beganMs: number
  #reasons = 0
  /** Milliseconds of the ends of pauses for reasons of the client, less those of their beginnings. */
  #pausedMs = 0
  #isOver = false
  #workMs = 0

  /** `now` returns milliseconds of a monotonic clock. */
  constructor(
    upstream: Pick<UpstreamFlow, 'pause' | 'resume'>,
    turns = TURN_BUDGET,
    now: () => number = () => performance.now(),
  ) {
    this.#upstream = upstream
    this.#turns = turns
    this.#now = now
    this.#beganMs = now()
  }

  /** Whether there is any reason to pause reading. */
  get isAny(): boolean {
    return this.#reasons !== 0
  }

  /** Whether data that has already arrived must not be processed either. */
  get mayNotRead(): boolean {
    return (this.#reasons & (BITS.count | BITS.memory | BITS.check | BITS.turn)) !== 0
  }

  /** Whether there is a reason to pause other than this one. */
  isAnyBut(reason: PauseReason): boolean {
    return (this.#reasons & ~BITS[reason]) !== 0
  }

  has(reason: PauseReason): boolean {
    return (this.#reasons & BITS[reason]) !== 0
  }

  /** Whether reading was paused so long for reasons of the client that a time-out or a break may follow from that. */
  get areLong(): boolean {
    const nowMs = this.#now()
    const pausedMs = (this.#reasons & OF_CLIENT) === 0 ? this.#pausedMs : this.#pausedMs + nowMs
    return pausedMs > (nowMs - this.#beganMs) * MAX_PAUSED_PART
  }

  /** Adds a reason to pause, and pauses reading. */
  begin(reason: PauseReason): void {
    this.#change(this.#reasons | BITS[reason])
    this.apply()
  }

  /** Removes a reason to pause, and resumes reading if it was the last one. */
  end(reason: PauseReason): void {
    this.remove(reason)
    this.apply()
  }

  /** Removes a reason to pause; reading is not resumed until `apply` is called. */
  remove(reason: PauseReason): void {
    this.#change(this.#reasons & ~BITS[reason])
  }

  /** Resumes or pauses reading, depending on whether there are reasons to pause. */
  apply(): void {
    if (this.#isOver || this.#reasons === 0) this.#upstream.resume()
    else this.#upstream.pause()
  }

  /**
   * Records time spent processing the response. A response that has used up a whole turn's time is large.
   * From then on it takes turns with other calls.
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

  #change(reasons: number): void {
    const isPaused = (reasons & OF_CLIENT) !== 0
    const wasPaused = (this.#reasons & OF_CLIENT) !== 0
    if (isPaused !== wasPaused) this.#pausedMs += isPaused ? -this.#now() : this.#now()
    this.#reasons = reasons
  }

  /** Resumes reading regardless of reasons. Data that still arrives is discarded. */
  discardRest(): void {
    this.#isOver = true
    this.apply()
  }
}
