import type { Hash } from 'node:crypto'
import type { StreamedText } from '@sluice/wire/event-texts'
import type { CallGuards, GuardScreen, TextLocation } from './call-guards.ts'

/** Processes a text in pieces. `push` returns what may be sent now, `end` the rest. */
interface TextStream {
  push(text: string): string
  end(): string
}

/** Checks a text in pieces, and counts the matches of each guard. */
interface ScreenedStream extends TextStream {
  readonly retained: number
  readonly counts: readonly number[]
  readonly blockedBy: number | undefined
}

/**
 * One text of a streamed answer. It is checked while it arrives, and placeholders are replaced with the
 * values of the request.
 */
export class GuardedStreamedText {
  readonly #guards: CallGuards
  readonly #spot: TextLocation
  readonly #place: GuardScreen | undefined
  readonly #screened: ScreenedStream | undefined
  readonly #restored: TextStream | undefined
  /** Numbers of matches that were already recorded, one for each guard. */
  #counted: readonly number[] = []
  #isOver = false
  readonly #isRepeated: boolean

  /** @param isRepeated Whether the text repeats another one, so that its matches are not counted again. */
  constructor(guards: CallGuards, spot: TextLocation & { readonly isJson: boolean }, isRepeated = false) {
    this.#isRepeated = isRepeated
    this.#guards = guards
    this.#spot = spot
    this.#place = guards.screenOf(spot)
    const screen = this.#place?.screen
    if (screen) this.#screened = screen.stream(undefined, spot.isJson)
    if (guards.pseudonyms.size > 0 && !spot.isSigned)
      this.#restored = guards.pseudonyms.restorer({ json: spot.isJson })
  }

  /** Whether a guard has blocked the text. Then only what was returned before may be sent. */
  get isBlocked(): boolean {
    return this.#screened?.blockedBy !== undefined
  }

  /** Number of characters in memory. A match deep in JSON in JSON may be many times as long as it is when it is read. */
  get retained(): number {
    return this.#screened?.retained ?? 0
  }

  /** Adds a piece of the text; returns what may be sent now. */
  push(text: string): string {
    const checked = this.#checked((stream) => stream.push(text), text)
    return this.#restored ? this.#restored.push(checked) : checked
  }

  /** Ends the text; returns the part that was held back. */
  end(): string {
    if (this.#isOver) return ''
    this.#isOver = true
    const checked = this.#checked((stream) => stream.end(), '')
    return this.#restored ? this.#restored.push(checked) + this.#restored.end() : checked
  }

  #checked(step: (stream: ScreenedStream) => string, unscreened: string): string {
    const [stream, place] = [this.#screened, this.#place]
    if (!stream || !place) return unscreened
    const beganMs = performance.now()
    const text = step(stream)
    if (this.#isRepeated && !this.isBlocked) return text
    const tookMs = performance.now() - beganMs
    const counts = [...stream.counts]
    const added = counts.map((count, index) => count - (this.#counted[index] ?? 0))
    this.#counted = counts
    this.#guards.record(place, added, this.#spot.isSigned, tookMs)
    return text
  }
}

/**
 * A text that is arriving in pieces. `channel` comes from the last event with a piece of the text, and can
 * write further such events.
 */
export interface OpenChannel {
  readonly guarded: GuardedStreamedText
  channel: StreamedText
  /** Digest of what has arrived of the text; undefined in a dialect whose events repeat no texts. */
  readonly digest: Hash | undefined
}
