import type { TextScreen } from './screen.ts'
import { type ScreenedTextReceiver, ScreenStream } from './screen-stream.ts'

/** Result of screening a text that consists of several parts. */
export interface ScreenedParts {
  readonly parts: readonly string[]
  /** Number of matches by the index of the rule. */
  readonly counts: readonly number[]
  readonly blockedBy: number | undefined
}

/**
 * Screens a text that consists of several parts, such as the lines of subtitles. A match may begin in one
 * part and end in another; its replacement is put into the part where it begins. A word never continues from
 * one part to the next.
 */
export function screenParts(screen: TextScreen, parts: readonly string[]): ScreenedParts {
  const starts: number[] = []
  let text = ''
  for (const part of parts) {
    if (text !== '' && part !== '' && !/\s$/.test(text) && !/^\s/.test(part)) text += ' '
    starts.push(text.length)
    text += part
  }
  const result = parts.map(() => '')
  const endOf = (index: number): number => (starts[index] ?? 0) + (parts[index] ?? '').length
  let at = 0
  const moveTo = (position: number): void => {
    while (at + 1 < parts.length && (starts[at + 1] ?? 0) <= position) at += 1
  }
  const sink: ScreenedTextReceiver = {
    keep(kept, position) {
      const end = position + kept.length
      for (let from = position; from < end; ) {
        moveTo(from)
        const next = Math.min(end, starts[at + 1] ?? Number.POSITIVE_INFINITY)
        // Skips the space that was inserted between two parts.
        result[at] += kept.slice(from - position, Math.max(0, Math.min(next, endOf(at)) - position))
        from = next
      }
      moveTo(end)
    },
    write(written) {
      result[at] += written
    },
  }
  const stream = new ScreenStream(screen, undefined, { sink })
  stream.whole(text)
  return { parts: result, counts: stream.counts, blockedBy: stream.blockedBy }
}
