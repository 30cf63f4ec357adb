import type { ResizableAllocation } from '../../limits/request-memory.ts'
import { TURN_BUDGET, type TurnBudget } from '../../limits/event-loop.ts'

/** Maximum number of events that wait for a slow client; it misses further ones. */
const MAX_WAITING = 40

/** Events that are sent to a client together. */
export interface LiveEventBatch {
  readonly text: string
  readonly events: number
  /** Number of calls that a client misses if it is not sent these events; null if unknown. */
  readonly missed: number | null
}

/**
 * A client that reads live calls as server-sent events, as fast as it can. Readers with the same query get
 * the same events, but each is written in a separate turn of the event loop, so that a model call never waits
 * for more than one write.
 */
export class LiveStreamClient {
  readonly #left: () => void
  readonly #memory: ResizableAllocation
  readonly #turns: Pick<TurnBudget, 'wait'>
  #waiting: string[] = []
  #waitingEvents = 0
  #waitingBytes = 0
  #wake: (() => void) | undefined
  #hasEnded = false
  /** Number of calls that this client missed since the last gap was reported; null if unknown. */
  #missed: number | null = 0

  /**
   * `left` is called once, when the stream ends. `memory` is the memory for events that wait or are being
   * written.
   */
  constructor(left: () => void, memory: ResizableAllocation, turns: Pick<TurnBudget, 'wait'> = TURN_BUDGET) {
    this.#left = left
    this.#memory = memory
    this.#turns = turns
  }

  /** Whether the stream to the client continues. */
  get isOpen(): boolean {
    return !this.#hasEnded
  }

  /** Sends events, or counts their calls as missed if too many events are waiting. */
  take({ text, events, missed }: LiveEventBatch): void {
    if (this.#hasEnded) return
    if (this.#waitingEvents >= MAX_WAITING || !this.#memory.take(text.length)) return this.miss(missed)
    this.#waitingBytes += text.length
    // Missed calls are reported before the next call, so that the order is right.
    this.#sendGap()
    this.#push(text, events)
  }

  /** Counts calls that the client misses; null stands for an unknown number. */
  miss(calls: number | null): void {
    this.#missed = sumOrUnknown([this.#missed, calls])
  }

  /** Reports missed calls to the client, if the queue has room for another event. */
  settle(): void {
    if (this.#waitingEvents < MAX_WAITING) this.#sendGap()
  }

  /** Sends a comment, which keeps the connection open. */
  comment(): void {
    if (this.#waitingEvents < MAX_WAITING) this.#push(':\n\n')
  }

  /** Ends the stream with an event that states the reason. */
  end(reason: string): void {
    if (this.#hasEnded) return
    this.#sendGap()
    this.#push(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`)
    this.#finish()
  }

  /** Ends the stream, because the client has disconnected. */
  leave(): void {
    if (this.#hasEnded) return
    this.#waiting = []
    this.#memory.release()
    this.#finish()
  }

  /** The events as text, until the stream ends. */
  async *text(): AsyncGenerator<string, void, undefined> {
    try {
      // Something is sent at once, so that the client sees that the stream is open.
      yield ':\n\n'
      for (;;) {
        if (this.#waiting.length > 0) {
          const text = this.#waiting.join('')
          const bytes = this.#waitingBytes
          this.#waiting = []
          this.#waitingEvents = 0
          this.#waitingBytes = 0
          yield text
          this.#memory.give(bytes)
        } else if (this.#hasEnded) return
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      this.leave()
      this.#memory.release()
    }
  }

  #sendGap(): void {
    if (this.#missed === 0) return
    this.#push(missedCallsEvent(this.#missed))
    this.#missed = 0
  }

  #push(text: string, events = 1): void {
    if (this.#hasEnded) return
    this.#waiting.push(text)
    this.#waitingEvents += events
    this.#notify()
  }

  #finish(): void {
    this.#hasEnded = true
    this.#notify()
    this.#left()
  }

  #notify(): void {
    if (this.#wake) this.#turns.wait(this.#wake)
    this.#wake = undefined
  }
}

/** The event that reports missed calls; null if their number is unknown. */
export function missedCallsEvent(missed: number | null): string {
  return `event: gap\ndata: ${JSON.stringify({ missed })}\n\n`
}

/** The sum of numbers of calls; null if one of them is unknown. */
export function sumOrUnknown(counts: readonly (number | null)[]): number | null {
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0)
}
