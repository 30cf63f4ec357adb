import { normalizeRanges, codePointRangesOf, type CodePointRanges } from '../automaton/code-points.ts'
import type { Detector, DetectorForm } from './detector.ts'

// Scripts without spaces between words: a word in them may be found anywhere in a text.
const WITHOUT_SPACES =
  '\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Bopo}\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tibt}\\p{scx=Talu}\\p{scx=Lana}\\p{scx=Java}\\p{scx=Yiii}'
const LETTER = new RegExp(`^[[\\p{L}\\p{N}_]--[${WITHOUT_SPACES}]]$`, 'v')
const MARK = /^[\p{M}\u200d]$/u
const SPACES = /\s+/u
const MAX_SPACES = 4

let borders:
  | {
      readonly letters: CodePointRanges
      readonly marks: CodePointRanges
      readonly lettersAndMarks: CodePointRanges
    }
  | undefined

/**
 * Finds words, ignoring case. A letter or digit must not be directly before or after a word, except in
 * scripts without spaces between words. A combining mark must not follow, because it would change the last
 * letter. Any white space matches a space within a phrase.
 */
export function wordsDetector(kind: string, words: readonly string[]): Detector {
  const written = [...new Set(words.flatMap(spellings))]
  const most = written.reduce(
    (longest, word) => Math.max(longest, word.replace(/\s+/gu, ' '.repeat(MAX_SPACES)).length),
    0,
  )
  return { kind, most, forms: written.map(formOf) }
}

/** The spellings of a word that differ in more than the case of single letters, such as `ß` and `ss`. */
function spellings(word: string): readonly string[] {
  const trimmed = word.trim()
  return [trimmed, trimmed.toUpperCase(), trimmed.toLowerCase()].flatMap((text) =>
    [text.normalize('NFC'), text.normalize('NFD')].map((form) => form.toLowerCase()),
  )
}

function formOf(word: string): DetectorForm {
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
  const letters = codePointRangesOf(LETTER)
  const marks = codePointRangesOf(MARK)
  return { letters, marks, lettersAndMarks: normalizeRanges([...letters, ...marks]) }
}

function lastLetter(letters: readonly string[]): string {
  return letters.findLast((letter) => !MARK.test(letter)) ?? ''
}

function escaped(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, String.raw`\$&`)
}
