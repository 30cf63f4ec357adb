import type { UsageEntry, UsageFilter } from '../../domain/usage-entry.ts'
import { matchesFilter } from './matches-filter.ts'

/** Most calls that a reader is sent in a second; more are a gap. */
const CALLS_PER_SECOND = 20
const SECOND_MS = 1_000
/** Most events that wait for a slow client; what comes then is a gap. */
const MAX_WAITING = 40

/** One client of the live stream: the calls that it wants, as server-sent events, no more than it reads. */
export class LiveReader {
  readonly #filter: UsageFilter | null
  readonly #textOf: (entry: UsageEntry) => string
  readonly #left: () => void
  #waiting: string[] = []
  #wake: (() => void) | undefined
  #hasEnded = false
  /** Calls since the last gap that were not sent; null if their number is unknown. */
  #missed: number | null = 0
  /** Begin of the second in which `#sent` calls were sent. */
  #secondMs = 0
  #sent = 0

  /** `filter` null wants no call; `textOf` is a call as JSON; `left` is called once, at the end. */
  constructor(filter: UsageFilter | null, textOf: (entry: UsageEntry) => string, left: () => void) {
    this.#filter = filter
    this.#textOf = textOf
    this.#left = left
  }

  /** Whether it goes on. */
  get isOpen(): boolean {
    return !this.#hasEnded
  }

  /** Sends a call that it wants, or counts it as missed. `nowMs`: a clock that never goes back. */
  offer(entry: UsageEntry, nowMs: number): void {
    if (!this.#filter || !matchesFilter(entry, this.#filter)) return
    this.#turn(nowMs)
    // Events stay in the order of the calls: what was missed is told before the next call.
    if (this.#sent >= CALLS_PER_SECOND || this.#waiting.length >= MAX_WAITING) return this.miss(1)
    this.#tellGap()
    this.#sent += 1
    this.#push(`event: call\nid: ${entry.id}\ndata: ${this.#textOf(entry)}\n\n`)
  }

  /** Counts calls that it cannot be sent; null = an unknown number. */
  miss(calls: number | null): void {
    this.#missed = calls === null || this.#missed === null ? null : this.#missed + calls
  }

  /** Tells of missed calls, as soon as further ones would be sent. */
  settle(nowMs: number): void {
    this.#turn(nowMs)
    if (this.#sent < CALLS_PER_SECOND && this.#waiting.length < MAX_WAITING) this.#tellGap()
  }

  /** Sends a comment, which keeps the connection open. */
  comment(): void {
    if (this.#waiting.length < MAX_WAITING) this.#push(':\n\n')
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
          this.#waiting = []
          yield text
        } else if (this.#hasEnded) return
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      this.leave()
    }
  }

  #turn(nowMs: number): void {
    if (nowMs - this.#secondMs < SECOND_MS) return
    this.#secondMs = nowMs
    this.#sent = 0
  }

  #tellGap(): void {
    if (this.#missed === 0) return
    this.#push(`event: gap\ndata: ${JSON.stringify({ missed: this.#missed })}\n\n`)
    this.#missed = 0
  }

  #push(event: string): void {
    if (this.#hasEnded) return
    this.#waiting.push(event)
    this.#notify()
  }

  #finish(): void {
    this.#hasEnded = true
    this.#notify()
    this.#left()
  }

  #notify(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
