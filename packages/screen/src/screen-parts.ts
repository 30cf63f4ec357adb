import { screenInSteps, type TextScreen } from './screen.ts'
import { type ScreenedTextReceiver, ScreenStream } from './screen-stream.ts'

/**
 * Screens a text that consists of several parts, such as the lines of subtitles, step by step. A match may begin in one
 * part and end in another; its replacement is put into the part where it begins. A word never continues from
 * one part to the next.
 */
export class PartsScreening {
  readonly #joined: JoinedParts
  readonly #stream: ScreenStream

  constructor(screen: TextScreen, parts: readonly string[]) {
    this.#joined = new JoinedParts(parts, true)
    this.#stream = new ScreenStream(screen, undefined, { sink: this.#joined })
  }

  /** The parts as one text. */
  get text(): string {
    return this.#joined.text
  }

  /** The parts as they are after the last step. */
  get parts(): readonly string[] {
    return this.#joined.result
  }

  /** Number of matches by the index of the rule. */
  get counts(): readonly number[] {
    return this.#stream.counts
  }

  get blockedBy(): number | undefined {
    return this.#stream.blockedBy
  }

  /** Screens up to a position of the text; its end ends the screening. */
  readTo(end: number): void {
    this.#stream.readTo(this.#joined.text, end)
  }
}

/**
 * Screens a text that consists of the pieces of a stream, which continue each other. Returns the pieces. Throws
 * `TooManyMatches`.
 */
export function screenContinuedParts(
  screen: TextScreen,
  parts: readonly string[],
  maxMatches: number,
): readonly string[] {
  const joined = new JoinedParts(parts, false)
  screenInSteps(new ScreenStream(screen, undefined, { sink: joined }), joined.text, maxMatches)
  return joined.result
}

/** Several texts that are screened as one, and what becomes of each. */
class JoinedParts implements ScreenedTextReceiver {
  readonly text: string
  readonly result: string[]
  readonly #parts: readonly string[]
  readonly #starts: number[] = []
  #at = 0

  /** @param isSpaced Whether a space is put between two parts that have none there. */
  constructor(parts: readonly string[], isSpaced: boolean) {
    this.#parts = parts
    this.result = parts.map(() => '')
    const pieces: string[] = []
    let length = 0
    let isAfterSpace = true
    for (const part of parts) {
      if (isSpaced && part !== '' && !isAfterSpace && !/^\s/.test(part)) {
        pieces.push(' ')
        length += 1
      }
      this.#starts.push(length)
      pieces.push(part)
      length += part.length
      if (part !== '') isAfterSpace = /\s$/.test(part)
    }
    this.text = pieces.join('')
  }

  readonly keep = (kept: string, position: number): void => {
    const end = position + kept.length
    for (let from = position; from < end; ) {
      this.#moveTo(from)
      const next = Math.min(end, this.#starts[this.#at + 1] ?? Number.POSITIVE_INFINITY)
      // Skips the space that was inserted between two parts.
      const to = Math.max(0, Math.min(next, this.#endOf(this.#at)) - position)
      this.result[this.#at] += kept.slice(from - position, to)
      from = next
    }
    this.#moveTo(end)
  }

  readonly write = (written: string): void => {
    this.result[this.#at] += written
  }

  #endOf(index: number): number {
    return (this.#starts[index] ?? 0) + (this.#parts[index] ?? '').length
  }

  #moveTo(position: number): void {
    while (this.#at + 1 < this.#parts.length && (this.#starts[this.#at + 1] ?? 0) <= position) this.#at += 1
  }
}
