import { INVISIBLE_CHARACTERS } from './invisible-characters.ts'

/**
 * Scripts whose letters change form next to the invisible joiners U+200C and U+200D. Between such letters,
 * usernames may contain these joiners.
 */
const JOINING_SCRIPTS = [
  'Arabic',
  'Syriac',
  'Mongolian',
  'Nko',
  'Mandaic',
  'Devanagari',
  'Bengali',
  'Gurmukhi',
  'Gujarati',
  'Oriya',
  'Tamil',
  'Telugu',
  'Kannada',
  'Malayalam',
  'Sinhala',
  'Khmer',
  'Myanmar',
  'Tibetan',
]
  .map((script) => String.raw`\p{Script=${script}}`)
  .join('')

const JOINERS = new RegExp(String.raw`(?<=[${JOINING_SCRIPTS}])[\u200C\u200D](?=[${JOINING_SCRIPTS}])`, 'gu')

/** Selectors that choose between forms of the emoji, the Han or the Mongolian letter before them. */
const SELECTORS =
  /(?<=[\p{Emoji}--[#*0-9]])[\uFE0E\uFE0F]|(?<=\p{Script=Han})[\uFE00-\uFE02\u{E0100}-\u{E01EF}]|(?<=\p{Script=Mongolian})[\u180B-\u180D\u180F]/gv

const INVISIBLE = new RegExp(INVISIBLE_CHARACTERS, 'v')

/**
 * Whether all characters of a username are visible and displayed in the order in which they are stored.
 * `docs/api.md: Users`.
 */
export function isFullyVisible(username: string): boolean {
  return !INVISIBLE.test(username.replaceAll(JOINERS, '').replaceAll(SELECTORS, ''))
}

/** Joiners that make one picture of two emoji. */
const EMOJI_JOINERS = /(?<=\p{Emoji}\uFE0F?)\u200D(?=\p{Emoji})/gv

/** The same for names of keys and display names, in which emoji may be joined. */
export function isVisibleLabel(name: string): boolean {
  return isFullyVisible(name.replaceAll(EMOJI_JOINERS, ''))
}

/** Replaces invisible characters of a name by their code points: `ann\u202e`. */
export function escapeInvisible(username: string): string {
  return username.replaceAll(
    new RegExp(INVISIBLE, 'gv'),
    (character) => `\\u${character.codePointAt(0)?.toString(16)}`,
  )
}

/** Invisible characters, which are ignored when names are compared. */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu

/**
 * A form that is the same for names that differ only in case, width, ligatures or invisible characters:
 * Unicode's NFKC_Casefold, in which dotless i also equals i.
 */
export function comparableName(username: string): string {
  // Folding may produce characters that NFKC changes, and vice versa, so both run twice.
  return folded(folded(username.normalize('NFD')))
}

function folded(text: string): string {
  const visible = text.replaceAll(IGNORED, '')
  // Convert letter by letter, because the lower case of a sigma would otherwise depend on its neighbours.
  const upper = Array.from(visible, (letter) => letter.toLowerCase().toUpperCase()).join('')
  return Array.from(upper, (letter) => letter.toLowerCase())
    .join('')
    .normalize('NFKC')
}

/** How two names differ whose comparable forms are equal, for an error message. */
export function nameDifference(one: string, other: string): 'case' | 'forms of letters' {
  return one.toUpperCase() === other.toUpperCase() ? 'case' : 'forms of letters'
}

const LATIN = /[\p{Letter}&&\p{Script=Latin}]/v
/** Alphabets with letters that look like Latin ones. */
const LOOKALIKES = {
  Cyrillic: /[\p{Letter}&&\p{Script=Cyrillic}]/v,
  Greek: /[\p{Letter}&&\p{Script=Greek}]/v,
  Armenian: /[\p{Letter}&&\p{Script=Armenian}]/v,
} as const

/**
 * The alphabet whose letters a name mixes with Latin ones, although they look alike; undefined if there is
 * none.
 */
export function alphabetMixedWithLatin(username: string): keyof typeof LOOKALIKES | undefined {
  const text = username.normalize('NFKC')
  if (!LATIN.test(text)) return undefined
  return Object.entries(LOOKALIKES).find(([, letters]) => letters.test(text))?.[0] as
    | keyof typeof LOOKALIKES
    | undefined
}
