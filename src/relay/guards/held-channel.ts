import type { Channel } from '@sluice/wire/guarded-events'
import { WINDOW_OVERLAP } from '../../domain/guard.ts'
import { difference } from './services/apply-judgement.ts'
import type { CheckedText } from './services/service-checks.ts'

/** Where a text of a held event is. Nothing of the event itself, which would stay in memory with it. */
export interface HeldSpot extends Omit<CheckedText, 'text'> {
  readonly from: number
  readonly to: number
  /** Whether it repeats what came in pieces. */
  readonly isRepeated: boolean
}

/** A text in a held event. */
export interface HeldText {
  readonly spot: HeldSpot
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

/** Memory of a channel without its text, in bytes. */
const CHANNEL_BYTES = 1024
/** Memory of a character of the text. */
const CHARACTER_BYTES = 2

/** One text of a stream that arrives in pieces, and that services check whole or in windows. */
export class HeldChannel {
  readonly spot: Omit<CheckedText, 'text'>
  isEnded = false
  /** What has arrived and is not decided yet. */
  undecided = ''
  /** What has arrived before. It is read only if something repeats the text, so that its parts are rarely joined. */
  #before = ''
  /** What was decided in its place; undefined while that is the same. */
  #out: string | undefined
  /** The pieces that are not wholly decided, and what was decided of the first one. */
  readonly #pieces: Piece[] = []
  #begun = ''
  /** The length of the text when it was last checked. */
  #checked = 0

  constructor({ place, isSigned, isJson }: Channel) {
    this.spot = { place, isSigned, isJson }
  }

  /** Takes a piece. */
  add(held: HeldText): void {
    this.undecided += held.given
    this.#pieces.push({ held, to: this.length })
  }

  /** The length of what has arrived. */
  get length(): number {
    return this.#before.length + this.undecided.length
  }

  /** What has arrived. */
  get text(): string {
    return this.#before + this.undecided
  }

  /** The memory that its text takes, in bytes. */
  get bytes(): number {
    return CHANNEL_BYTES + CHARACTER_BYTES * (this.length + (this.#out?.length ?? 0))
  }

  /** Whether this is all that has arrived. */
  isText(text: string): boolean {
    return text.length === this.length && text === this.text
  }

  /** Whether all of it is decided, and nothing more follows. */
  get isDecided(): boolean {
    return this.isEnded && this.undecided === ''
  }

  /** The whole text as it is sent; undefined until that is decided. */
  get decidedText(): string | undefined {
    return this.isDecided ? (this.#out ?? this.#before) : undefined
  }

  /** Whether there is a window to check: so many characters, or the last ones. Arguments of tools are checked whole. */
  isDue(window: number): boolean {
    if (this.undecided === '') return false
    if (this.isEnded) return true
    if (this.spot.place === 'tool_arguments') return false
    return this.length - Math.max(this.#before.length, this.#checked - WINDOW_OVERLAP) >= window
  }

  /**
   * Decides about what was undecided: `next` goes on in its place. While more follows, the last characters wait for the
   * next window, in which a match that the window has cut is whole.
   */
  decide(next: string, window: number): void {
    const given = this.undecided
    this.#checked = this.length
    const { length, out } = this.isEnded
      ? { length: given.length, out: next }
      : settledPart(given, next, window)
    this.#settle(given, length, out)
  }

  /** Decides so many characters. What is not as it came goes to the first event that has any of them. */
  #settle(given: string, length: number, out: string): void {
    const isSame = out.length === length && given.startsWith(out)
    const from = this.#before.length
    const end = from + length
    let rest = out
    let count = 0
    for (const { held, to } of this.#pieces) {
      const begin = Math.max(from, to - held.given.length)
      if (begin >= end && to > end) break
      this.#begun += isSame ? given.slice(begin - from, Math.min(to, end) - from) : rest
      rest = ''
      if (to > end) break
      held.next = this.#begun === held.given ? held.given : owned(this.#begun)
      this.#begun = ''
      count += 1
    }
    this.#pieces.splice(0, count)
    const part = owned(given.slice(0, length))
    if (!isSame || this.#out !== undefined)
      this.#out = (this.#out ?? this.#before) + (isSame ? part : owned(out))
    this.#before += part
    this.undecided = owned(given.slice(length))
  }
}

/** The same text in memory of its own: a part of a text keeps the whole one. */
function owned(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string
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
