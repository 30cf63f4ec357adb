import type { HeldBytes } from '../../limits/request-memory.ts'
import { gapText, type LivePiece, type LiveReader, sumOf } from './live-reader.ts'
import { type LiveTurn, PerSecond } from './live-source.ts'

/**
 * Maximum number of newest events that are kept for a reader that reconnects, and of calls that it is sent at
 * once.
 */
const MAX_KEPT = 200
const MAX_AT_ONCE = 20

/** An event that readers were sent: a call, or a gap of a number of calls. */
interface Event {
  readonly id: string | null
  readonly text: string
  readonly missed: number | null
}

/** Shows their calls to readers with the same wish; each event is written once for all of them. */
export class LiveView {
  readonly readers = new Set<LiveReader>()
  readonly #memory: HeldBytes
  readonly #budget = new PerSecond()
  /** Sorted, oldest first. */
  #kept: Event[] = []
  /** Number of calls since the last gap that were not shown; null if unknown. */
  #missed: number | null = 0

  /** `memory` is for the events that are kept. */
  constructor(memory: HeldBytes) {
    this.#memory = memory
  }

  /** Drops the kept events, because no reader will reconnect. */
  close(): void {
    this.#kept = []
    this.#memory.release()
  }

  /**
   * Adds a reader, and sends it what was shown after the last call that it received, as far as that is known.
   */
  add(reader: LiveReader, lastId: string | undefined): void {
    // Calls that were missed earlier concern only the readers that were connected then.
    this.#send(this.#gap())
    if (lastId !== undefined) this.#catchUp(reader, lastId)
    this.readers.add(reader)
  }

  /** Shows calls, no more than fit into this second. Missed calls are reported before the next ones. */
  show({ calls, missed }: LiveTurn, nowMs: number): void {
    const room = this.#budget.roomAt(nowMs)
    const shown = calls.slice(0, room)
    this.#budget.take(shown.length)
    this.#send([
      ...(room > 0 ? this.#gap() : []),
      ...shown.map(({ id, text }) => ({
        id,
        text: `event: call\nid: ${id}\ndata: ${text}\n\n`,
        missed: 1,
      })),
    ])
    this.#missed = sumOf([this.#missed, missed, calls.length - shown.length])
    for (const reader of this.readers) reader.settle()
  }

  #gap(): Event[] {
    const missed = this.#missed
    this.#missed = 0
    return missed === 0 ? [] : [{ id: null, text: gapText(missed), missed }]
  }

  #send(events: readonly Event[]): void {
    if (events.length === 0) return
    for (const event of events) this.#keep(event)
    const piece = pieceOf(events)
    for (const reader of this.readers) reader.take(piece)
  }

  // The oldest are dropped first, so that there is no gap among those that are kept.
  #keep(event: Event): void {
    while (this.#kept.length >= MAX_KEPT || !this.#memory.take(event.text.length)) {
      const oldest = this.#kept.shift()
      if (!oldest) return
      this.#memory.give(oldest.text.length)
    }
    this.#kept.push(event)
  }

  #catchUp(reader: LiveReader, lastId: string): void {
    const at = this.#kept.findLastIndex(({ id }) => id === lastId)
    if (at === -1) return reader.miss(null)
    const since = this.#kept.slice(at + 1)
    const first = since.slice(0, MAX_AT_ONCE)
    if (first.length > 0) reader.take(pieceOf(first))
    reader.miss(sumOf(since.slice(MAX_AT_ONCE).map(({ missed }) => missed)))
  }
}

function pieceOf(events: readonly Event[]): LivePiece {
  return {
    text: events.map(({ text }) => text).join(''),
    events: events.length,
    missed: sumOf(events.map(({ missed }) => missed)),
  }
}
