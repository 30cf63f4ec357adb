import { JsonTextStream } from '../../redaction/json-text.ts'
import type { CallGuards, PlaceScreen, TextSpot } from './call-guards.ts'

/** A stream of text: what may be sent now, and the rest at its end. */
interface TextStream {
  push(text: string): string
  end(): string
}

/** A stream of text that is checked. */
interface ScreenedStream extends TextStream {
  readonly counts: readonly number[]
  readonly blockedBy: number | undefined
}

/** One text of a streamed answer: checked while it arrives, with what the request replaced put back. */
export class GuardedChannel {
  readonly #guards: CallGuards
  readonly #spot: TextSpot
  readonly #place: PlaceScreen | undefined
  readonly #screened: ScreenedStream | undefined
  readonly #restored: TextStream | undefined
  /** Matches that were recorded already, by the position of their guard. */
  #counted: readonly number[] = []
  #isOver = false
  readonly #isRepeated: boolean

  /** @param isRepeated Whether it repeats another text, so that its matches are not counted again. */
  constructor(guards: CallGuards, spot: TextSpot & { readonly isJson: boolean }, isRepeated = false) {
    this.#isRepeated = isRepeated
    this.#guards = guards
    this.#spot = spot
    this.#place = guards.screenOf(spot)
    const screen = this.#place?.screen
    if (screen) this.#screened = spot.isJson ? new JsonTextStream(screen) : screen.stream()
    if (guards.pseudonyms.size > 0 && !spot.isSigned)
      this.#restored = guards.pseudonyms.restorer({ json: spot.isJson })
  }

  /** Whether a guard has blocked it: what was returned until then is all that may be sent. */
  get isBlocked(): boolean {
    return this.#screened?.blockedBy !== undefined
  }

  /** Takes a piece; returns what may be sent now. */
  push(text: string): string {
    const checked = this.#checked((stream) => stream.push(text), text)
    return this.#restored ? this.#restored.push(checked) : checked
  }

  /** Ends the text; returns what was held back of it. */
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
