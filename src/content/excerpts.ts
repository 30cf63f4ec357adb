import type { ReadableTurn } from '@sluice/wire/readable-turns'

/** A piece of what was said in a call. `at` and `length` say where in `text` the searched words are. */
export interface Excerpt {
  readonly role: ReadableTurn['role']
  readonly text: string
  readonly at: number
  readonly length: number
}

/** Characters of an excerpt before the searched words, and after them. */
const BEFORE = 80
const AFTER = 160
/** Characters with a meaning in regular expressions. */
const SYNTAX = /[.*+?^${}()|[\]\\/]/g

/**
 * The last place in a conversation that has these words, in any case; undefined if none has. The last one,
 * because earlier turns were mostly said in earlier calls.
 */
export function excerptWith(turns: readonly ReadableTurn[], words: string): Excerpt | undefined {
  // Regular expressions ignore case without changing the length of the text, as other functions do.
  const pattern = new RegExp(words.replace(SYNTAX, '\\$&'), 'iu')
  for (const { role, parts } of turns.toReversed())
    for (const text of parts.flatMap(textsOfPart).toReversed()) {
      const found = pattern.exec(text)
      if (found) return excerptAround(role, text, found.index, found[0].length)
    }
  return undefined
}

/**
 * The beginning of what the user said first; undefined if there is no text. Coding agents put reminders in
 * tags before it, which are skipped.
 */
export function firstWords(turns: readonly ReadableTurn[]): Excerpt | undefined {
  const texts = turns
    .filter(({ role }) => role === 'user')
    .flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'text' ? [part.text.trim()] : [])))
    .filter((text) => text !== '')
  const text = texts.find((one) => !one.startsWith('<')) ?? texts[0]
  return text === undefined ? undefined : excerptAround('user', text, 0, 0)
}

function excerptAround(role: ReadableTurn['role'], text: string, at: number, length: number): Excerpt {
  const start = Math.max(0, at - BEFORE)
  // A cut may divide a character of two units.
  const before = text.slice(start, at).toWellFormed()
  const after = text.slice(at, at + length + AFTER).toWellFormed()
  return { role, text: before + after, at: before.length, length }
}

function textsOfPart(part: ReadableTurn['parts'][number]): readonly string[] {
  switch (part.kind) {
    case 'text':
    case 'thinking':
      return [part.text]
    case 'tool-call':
      return [part.name, part.input]
    case 'tool-result':
      return part.parts.flatMap(textsOfPart)
    case 'search':
      return [part.query, ...part.pages.map(({ title, url }) => `${title} ${url}`)]
    case 'opaque':
      return [part.json]
    case 'media':
      return part.url === undefined ? [] : [part.url]
  }
}
