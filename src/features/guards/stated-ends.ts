import { isStreamedTextEnded } from './streamed-text-map.ts'
import type { StreamEvent } from './stream-event.ts'

/** What an event has in which a provider may state that a choice or a candidate has ended. Others need not be read for that. */
const STATED = /"finish_?reason"\s*:(?:\s|data:)*"[^"]/i
/** Bytes of an empty text in JSON. */
const EMPTY = 2

/**
 * Holds an event that states the end of an answer until the next one shows whether the answer goes on. Gemini's older models, and
 * servers that convert their streams, state the end in every event: each piece of the text would be checked on its own, and a
 * match that continues from one to the next would not be found.
 */
export class StatedEnds {
  #held: StreamEvent | undefined
  /** The texts whose end it states. */
  #stated: ReadonlySet<string> = new Set()

  /** Length of the event that is held. */
  get length(): number {
    return this.#held?.frame.length ?? 0
  }

  /** Adds an event. Returns those that may go on. */
  add(event: StreamEvent): StreamEvent[] {
    if (this.#held && goesOn(this.#stated, event)) this.#held.ignoreStatedEnds()
    const before = this.end()
    const ends = STATED.test(event.frame) ? event.read?.statedEnds : undefined
    // What was read takes more memory than is counted for an event that waits.
    event.forget()
    if (ends === undefined) return [...before, event]
    this.#held = event
    this.#stated = new Set(ends)
    return before
  }

  /** Returns the event that is held, because no other one follows. */
  end(): StreamEvent[] {
    const held = this.#held
    this.#held = undefined
    return held ? [held] : []
  }
}

/** Whether an event continues a text whose end an earlier one has stated. */
function goesOn(ends: ReadonlySet<string>, next: StreamEvent): boolean {
  return (
    next.read?.texts.some(
      ({ channel, from, to }) => channel && to - from > EMPTY && isStreamedTextEnded(ends, channel.key),
    ) === true
  )
}
