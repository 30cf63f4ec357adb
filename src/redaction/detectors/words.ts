import { normalized, rangesOf, type Ranges } from '../automaton/code-points.ts'
import type { Detector, Form } from './detector.ts'

// Scripts that are written without spaces: a word of theirs may stand anywhere.
const WITHOUT_SPACES =
  '\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Bopo}\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tibt}\\p{scx=Talu}\\p{scx=Lana}\\p{scx=Java}\\p{scx=Yiii}'
const LETTER = new RegExp(`^[[\\p{L}\\p{N}_]--[${WITHOUT_SPACES}]]$`, 'v')
const MARK = /^[\p{M}\u200d]$/u
const SPACES = /\s+/u
const MAX_SPACES = 4

let borders:
  | { readonly letters: Ranges; readonly marks: Ranges; readonly lettersAndMarks: Ranges }
  | undefined

/**
 * Finds words without regard to case. Next to a letter or a digit of a word there must be none, except in scripts that are
 * written without spaces; a mark that changes the last letter must not follow. Space within a phrase is any white space.
 */
export function wordsDetector(kind: string, words: readonly string[]): Detector {
  const written = [...new Set(words.flatMap(spellings))]
  const most = written.reduce(
    (longest, word) => Math.max(longest, word.replace(/\s+/gu, ' '.repeat(MAX_SPACES)).length),
    0,
  )
  return { kind, most, forms: written.map(formOf) }
}

/** The ways of writing a word that differ in more than the case of single letters. */
function spellings(word: string): readonly string[] {
  const trimmed = word.trim()
  return [trimmed, trimmed.toUpperCase(), trimmed.toLowerCase()].flatMap((text) =>
    [text.normalize('NFC'), text.normalize('NFD')].map((form) => form.toLowerCase()),
  )
}

function formOf(word: string): Form {
  borders ??= bordersOf()
  const letters = Array.from(word)
  const { letters: isLetter, marks, lettersAndMarks } = borders
  return {
    source: `(?i)${word.split(SPACES).map(escaped).join(`\\s{1,${MAX_SPACES}}`)}`,
    ...(LETTER.test(letters[0] as string) && { notAfter: isLetter }),
    notBefore: LETTER.test(lastLetter(letters)) ? lettersAndMarks : marks,
  }
}

function bordersOf() {
  const letters = rangesOf(LETTER)
  const marks = rangesOf(MARK)
  return { letters, marks, lettersAndMarks: normalized([...letters, ...marks]) }
}

function lastLetter(letters: readonly string[]): string {
  return letters.findLast((letter) => !MARK.test(letter)) ?? ''
}

function escaped(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, String.raw`\$&`)
}
