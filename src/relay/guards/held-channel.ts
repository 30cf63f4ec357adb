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
  /** The first piece that is not wholly decided, and what was decided of it. */
  #piece = 0
  #begun = ''
  /** The number of characters that are decided. */
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
  decide(next: string, window: number): void {
    const given = this.undecided
    this.#checked = this.text.length
    const { length, out } = this.isEnded
      ? { length: given.length, out: next }
      : settledPart(given, next, window)
    this.#settle(length, out)
  }

  /** Decides so many characters. What is not as it came goes to the first event that has any of them. */
  #settle(length: number, out: string): void {
    const from = this.#decided
    const isSame = out.length === length && this.text.startsWith(out, from)
    const end = from + length
    let rest = out
    for (; this.#piece < this.#pieces.length; this.#piece++) {
      const piece = this.#pieces[this.#piece]
      if (!piece) break
      const begin = Math.max(from, piece.to - piece.held.given.length)
      if (begin >= end && piece.to > end) break
      this.#begun += isSame ? this.text.slice(begin, Math.min(piece.to, end)) : rest
      rest = ''
      if (piece.to > end) break
      piece.held.next = this.#begun
      this.#begun = ''
    }
    this.#decided = end
    this.#out += out
  }
}

/**
 * The part of a window that is decided while more follows, and what goes on in its place. A change in the overlap may be
 * about a part of a match: it waits for the rest, unless twice a window waits already.
 */
function settledPart(
  given: string,
  next: string,
  window: number,
): { readonly length: number; readonly out: string } {
  const limit = characterStart(given, given.length - WINDOW_OVERLAP)
  const kept = (length: number): { readonly length: number; readonly out: string } => ({
    length,
    out: next.slice(0, next.length - (given.length - length)),
  })
  if (limit <= 0) return NOTHING
  const change = next === given ? undefined : difference(given, next)
  if (!change || change.end <= limit) return kept(limit)
  const before = characterStart(given, Math.min(limit, change.start - WINDOW_OVERLAP))
  if (before > 0) return { length: before, out: given.slice(0, before) }
  return given.length < 2 * window ? NOTHING : kept(change.end)
}

const NOTHING = { length: 0, out: '' } as const

/** The offset of the character that has the code unit at this offset. */
function characterStart(text: string, at: number): number {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at - 1 : at
}
