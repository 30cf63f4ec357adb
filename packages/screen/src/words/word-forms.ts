// Scripts without spaces between words: a word in them may be found anywhere in a text.
const WITHOUT_SPACES =
  '\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Bopo}\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tibt}\\p{scx=Talu}\\p{scx=Lana}\\p{scx=Java}\\p{scx=Yiii}'
const LETTER = new RegExp(`^[[\\p{L}\\p{N}_]--[${WITHOUT_SPACES}]]$`, 'v')
const MARK = /^[\p{M}\u200d]$/u
const SPACES = /\s+/u

/** A spelling of a word or a phrase, as it may stand in a text. */
export interface WordForm {
  /** The parts between white space. */
  readonly parts: readonly string[]
  /** Whether no letter may be directly before or after it, as in scripts with spaces between words. */
  readonly borderBefore: boolean
  readonly borderAfter: boolean
}

/**
 * The spellings of a word that differ in more than the case of single letters, such as `ß` and `ss`. A letter
 * or digit must not be directly before or after a word, except in scripts without spaces between words.
 */
export function wordForms(word: string): readonly WordForm[] {
  const trimmed = word.trim().normalize('NFC')
  const turkish = /[İı]/.test(trimmed)
    ? [trimmed.toLocaleUpperCase('tr'), trimmed.toLocaleLowerCase('tr')]
    : []
  const spellings = [trimmed, trimmed.toUpperCase(), trimmed.toLowerCase(), ...turkish]
    .flatMap((text) => [text.normalize('NFC'), text.normalize('NFD')])
    // İ stays as it is, because it becomes two characters in small letters.
    .map((form) => (form.includes('İ') ? form : form.toLowerCase()))
  return [...new Set(spellings)].map((spelling) => {
    const letters = Array.from(spelling)
    return {
      parts: spelling.split(SPACES),
      borderBefore: isLetter(letters[0] as string),
      borderAfter: isLetter(letters.findLast((letter) => !MARK.test(letter)) ?? ''),
    }
  })
}

/** Whether a character is a letter or digit of a script with spaces between words. */
export function isLetter(character: string): boolean {
  return LETTER.test(character)
}

/** Whether a character is a combining mark, which changes the letter before it. */
export function isMark(character: string): boolean {
  return MARK.test(character)
}
