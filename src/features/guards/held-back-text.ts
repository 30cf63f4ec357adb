import type { StreamedText, EventText } from '@sluice/wire/event-texts'
import { CHECK_WINDOW_OVERLAP } from '../../domain/guard.ts'
import { changedRange } from './services/apply-judgement.ts'
import type { CheckedText } from './services/service-checks.ts'

/** A text in an event that is held back. */
export interface HeldText {
  readonly spot: Omit<CheckedText, 'text'>
  /** The text as it arrived from the upstream. */
  readonly given: string
  /** The text to send in its place; undefined until services have decided about the text. */
  next: string | undefined
  /**
   * The text that this one repeats: a text that arrived in pieces, or an earlier one that arrived in one
   * piece.
   */
  repeats?: { readonly decidedText: string | undefined } | undefined
}

/** A piece of a text, and the offset in the text at which the piece ends. */
interface Piece {
  readonly held: HeldText
  readonly to: number
}

/** Memory in bytes for a text that arrives in pieces, in addition to its characters. */
const CHANNEL_BYTES = 1024
/** Memory of a character of the text, in bytes. */
const CHARACTER_BYTES = 2

/**
 * One text of a stream that arrives in pieces. Guards' services check it as a whole, or in parts of a certain
 * length (windows).
 */
export class HeldBackText {
  readonly spot: Omit<CheckedText, 'text'>
  isEnded = false
  /** The part of the text about which guards' services have not decided yet. */
  undecided = ''
  /**
   * The part of the text that was decided, as it arrived. It is read only if another text may repeat this
   * one, so its parts are rarely joined.
   */
  #before = ''
  /** The text that is sent in place of `#before`; undefined while both are the same. */
  #out: string | undefined
  /** The pieces of which a part is undecided, and the decided part of the first one. */
  readonly #pieces: Piece[] = []
  #begun = ''
  /** The length of the text that had arrived when it was last checked. */
  #checked = 0

  constructor({ place, isSigned, isJson }: StreamedText) {
    this.spot = { place, isSigned, isJson }
  }

  /** Adds a piece of the text. */
  add(held: HeldText): void {
    this.undecided += held.given
    this.#pieces.push({ held, to: this.length })
  }

  /** The length of the text that has arrived. */
  get length(): number {
    return this.#before.length + this.undecided.length
  }

  /** The text that has arrived. */
  get text(): string {
    return this.#before + this.undecided
  }

  /** The memory that the text takes, in bytes. */
  get bytes(): number {
    return CHANNEL_BYTES + CHARACTER_BYTES * (this.length + (this.#out?.length ?? 0))
  }

  /** Whether this is exactly the text that has arrived. */
  isText(text: string): boolean {
    return text.length === this.length && text === this.text
  }

  /** Whether the text is complete and all of it is decided. */
  get isDecided(): boolean {
    return this.isEnded && this.undecided === ''
  }

  /** The whole text to send; undefined until all of it is decided. */
  get decidedText(): string | undefined {
    return this.isDecided ? (this.#out ?? this.#before) : undefined
  }

  /**
   * Whether enough has arrived for a check: `window` new characters, or the rest of an ended text. Arguments
   * of tool calls are checked only as a whole.
   */
  isDue(window: number): boolean {
    if (this.undecided === '') return false
    if (this.isEnded) return true
    if (this.spot.place === 'tool_arguments') return false
    return this.length - Math.max(this.#before.length, this.#checked - CHECK_WINDOW_OVERLAP) >= window
  }

  /**
   * Ends a check of the undecided part: `next` is sent in its place. While more text follows, the last
   * characters stay undecided until the next window, so that a match that crosses the border is found whole.
   */
  decide(next: string, window: number): void {
    const given = this.undecided
    this.#checked = this.length
    const { length, out } = this.isEnded
      ? { length: given.length, out: next }
      : settledPart(given, next, window)
    this.#settle(given, length, out)
  }

  /**
   * Decides about the next `length` characters: `out` is sent in their place. If it was changed, it is sent
   * in the first event that has any of these characters.
   */
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

/** Copies a text, because a part of a string keeps the whole string in memory. */
function owned(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string
}

/**
 * Returns how many characters of a checked part are decided while more text follows, and what is sent in
 * their place. A change at the end of the part may concern only the beginning of a match, so it waits for the
 * rest, unless twice the window is already waiting.
 */
function settledPart(
  given: string,
  next: string,
  window: number,
): { readonly length: number; readonly out: string } {
  const limit = characterStart(given, given.length - CHECK_WINDOW_OVERLAP)
  const kept = (length: number): { readonly length: number; readonly out: string } => ({
    length,
    out: next.slice(0, next.length - (given.length - length)),
  })
  if (limit <= 0) return NOTHING
  const change = next === given ? undefined : changedRange(given, next)
  if (!change || change.end <= limit) return kept(limit)
  const before = characterStart(given, Math.min(limit, change.start - CHECK_WINDOW_OVERLAP))
  if (before > 0) return { length: before, out: given.slice(0, before) }
  return given.length < 2 * window ? NOTHING : kept(change.end)
}

const NOTHING = { length: 0, out: '' } as const

/** The offset at which the character begins to which the code unit at this offset belongs. */
function characterStart(text: string, at: number): number {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at - 1 : at
}

/** How services see a text that an event contains. */
export function textSpot({ place, isSigned, isJson, isNumber }: EventText): HeldText['spot'] {
  return { place, isSigned, isJson, isNumber }
}

/**
 * Returns the key of a text that arrived in one piece, by which its repetitions in later events are found.
 */
export function wholeTextKey({ spot, given }: Pick<HeldText, 'spot' | 'given'>): string {
  return `${spot.place} ${spot.isSigned} ${spot.isJson} ${given}`
}
