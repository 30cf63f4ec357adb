import type { Channel, EventText } from '@sluice/wire/guarded-events'
import { WINDOW_OVERLAP } from '../../domain/guard.ts'
import { difference } from './services/apply-judgement.ts'
import type { CheckedText } from './services/service-checks.ts'

/** A text in a held event. */
export interface HeldText {
  readonly text: EventText
  /** The text as it came. */
  readonly given: string
  /** The text as it is sent; undefined until it is decided. */
  next: string | undefined
  /** The channel whose whole text it repeats. */
  repeats?: HeldChannel | undefined
}

/** A piece of a channel's text, with the offset of its end. */
interface Piece {
  readonly held: HeldText
  readonly to: number
}

/** One text of a stream that arrives in pieces, and that services check whole or in windows. */
export class HeldChannel {
  readonly spot: Omit<CheckedText, 'text'>
  /** What has arrived. */
  text = ''
  isEnded = false
  readonly #pieces: Piece[] = []
  /** Pieces that are decided, and the offset to which they reach. */
  #decidedPieces = 0
  #decided = 0
  /** What was decided about them. */
  #out = ''
  /** The length of the text when it was last checked. */
  #checked = 0

  constructor({ place, isSigned, isJson }: Channel) {
    this.spot = { place, isSigned, isJson }
  }

  get isJson(): boolean {
    return this.spot.isJson
  }

  /** Takes a piece. */
  add(held: HeldText): void {
    this.text += held.given
    this.#pieces.push({ held, to: this.text.length })
  }

  /** What is not decided yet. */
  get undecided(): string {
    return this.text.slice(this.#decided)
  }

  /** Whether all of it is decided, and nothing more follows. */
  get isDecided(): boolean {
    return this.isEnded && this.#decided === this.text.length
  }

  /** The whole text as it is sent; undefined until that is decided. */
  get decidedText(): string | undefined {
    return this.isDecided ? this.#out : undefined
  }

  /** Whether there is a window to check: so many characters, or the last ones. JSON is checked whole. */
  isDue(window: number): boolean {
    if (this.#decided === this.text.length) return false
    if (this.isEnded) return true
    return (
      !this.isJson && this.text.length - Math.max(this.#decided, this.#checked - WINDOW_OVERLAP) >= window
    )
  }

  /**
   * Decides about what was undecided: `next` goes on in its place. While more follows, the last characters wait for the
   * next window, in which a match that the window has cut is whole.
   */
  decide(next: string): void {
    const given = this.undecided
    this.#checked = this.text.length
    if (this.isEnded) return this.#settle(given.length, next)
    const change = next === given ? undefined : difference(given, next)
    const limit = given.length - WINDOW_OVERLAP
    if (!change || change.start >= limit) {
      const length = this.#boundary(0, Math.min(limit, change?.start ?? limit))
      return this.#settle(length, given.slice(0, length))
    }
    const length = this.#boundary(change.end, limit) || this.#boundaryFrom(change.end)
    this.#settle(length, next.slice(0, next.length - (given.length - length)))
  }

  /** The last end of a piece between these offsets of what is undecided; 0 if there is none. */
  #boundary(from: number, to: number): number {
    let found = 0
    for (let at = this.#decidedPieces; at < this.#pieces.length; at++) {
      const end = (this.#pieces[at]?.to ?? 0) - this.#decided
      if (end > to) break
      if (end >= from) found = end
    }
    return found
  }

  #boundaryFrom(from: number): number {
    for (let at = this.#decidedPieces; at < this.#pieces.length; at++) {
      const end = (this.#pieces[at]?.to ?? 0) - this.#decided
      if (end >= from) return end
    }
    return this.text.length - this.#decided
  }

  /** Decides so many characters: the first piece gets what is not as it came. */
  #settle(length: number, out: string): void {
    const isSame = this.text.startsWith(out, this.#decided) && out.length === length
    const end = this.#decided + length
    let rest = out
    while (this.#decidedPieces < this.#pieces.length) {
      const piece = this.#pieces[this.#decidedPieces]
      if (!piece || piece.to > end) break
      piece.held.next = isSame ? piece.held.given : rest
      rest = ''
      this.#decidedPieces += 1
    }
    this.#decided = end
    this.#out += out
  }
}
