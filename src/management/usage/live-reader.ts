import type { HeldBytes } from '../../limits/held-bytes.ts'
import { LOOP_TURNS, type SharedTurns } from '../../limits/shared-turns.ts'

/** Events that may wait for a slow client before it misses further ones. */
const MAX_WAITING = 40

/** Events that are sent together. */
export interface LivePiece {
  readonly text: string
  readonly events: number
  /** How many calls a client misses that is not sent it; null if the number is unknown. */
  readonly missed: number | null
}

/**
 * One client of the live stream: server-sent events, no more than it reads. All that read the same are sent
 * it at once; each is written to in a turn of its own, so that calls wait for one of them at most.
 */
export class LiveReader {
  readonly #left: () => void
  readonly #memory: HeldBytes
  readonly #turns: Pick<SharedTurns, 'wait'>
  #waiting: string[] = []
  #waitingEvents = 0
  #waitingBytes = 0
  #wake: (() => void) | undefined
  #hasEnded = false
  /** Calls since the last gap that it was not sent; null if their number is unknown. */
  #missed: number | null = 0

  /** `left` is called once, at the end. `memory` is for the events that wait, or are being written. */
  constructor(left: () => void, memory: HeldBytes, turns: Pick<SharedTurns, 'wait'> = LOOP_TURNS) {
    this.#left = left
    this.#memory = memory
    this.#turns = turns
  }

  /** Whether it goes on. */
  get isOpen(): boolean {
    return !this.#hasEnded
  }

  /** Sends events, or counts their calls as missed. */
  take({ text, events, missed }: LivePiece): void {
    if (this.#hasEnded) return
    if (this.#waitingEvents >= MAX_WAITING || !this.#memory.take(text.length)) return this.miss(missed)
    this.#waitingBytes += text.length
    // Events stay in the order of the calls: what was missed is told before the next call.
    this.#tellGap()
    this.#push(text, events)
  }

  /** Counts calls that it cannot be sent; null = an unknown number. */
  miss(calls: number | null): void {
    this.#missed = sumOf([this.#missed, calls])
  }

  /** Tells of missed calls, as soon as further ones would be sent. */
  settle(): void {
    if (this.#waitingEvents < MAX_WAITING) this.#tellGap()
  }

  /** Sends a comment, which keeps the connection open. */
  comment(): void {
    if (this.#waitingEvents < MAX_WAITING) this.#push(':\n\n')
  }

  /** Ends it with an event that says why. */
  end(reason: string): void {
    if (this.#hasEnded) return
    this.#tellGap()
    this.#push(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`)
    this.#finish()
  }

  /** Ends it: the client has gone. */
  leave(): void {
    if (this.#hasEnded) return
    this.#waiting = []
    this.#memory.release()
    this.#finish()
  }

  /** The events as text, until the end. */
  async *text(): AsyncGenerator<string, void, undefined> {
    try {
      // A first piece at once: the client learns that its stream is there.
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

  #tellGap(): void {
    if (this.#missed === 0) return
    this.#push(gapText(this.#missed))
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

/** The event that tells of so many missed calls; null = an unknown number. */
export function gapText(missed: number | null): string {
  return `event: gap\ndata: ${JSON.stringify({ missed })}\n\n`
}

/** Sum of numbers of calls; null if one of them is unknown. */
export function sumOf(counts: readonly (number | null)[]): number | null {
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0)
}
