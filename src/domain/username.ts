/** Scripts whose letters change form around U+200C or U+200D. */
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

/** Direction controls and invisible characters. Variation selectors are allowed, as emoji contain them. */
const INVISIBLE = /[\p{Bidi_Control}[\p{Default_Ignorable_Code_Point}--\p{Variation_Selector}]]/v

/** Whether a user's name is displayed completely and in its written order. `docs/api.md: Users`. */
export function isFullyVisible(username: string): boolean {
  return !INVISIBLE.test(username.replaceAll(JOINERS, ''))
}

/** A name with invisible characters as code points: `ann\u202e`. */
export function escapeInvisible(username: string): string {
  return username.replaceAll(
    new RegExp(INVISIBLE, 'gv'),
    (character) => `\\u${character.codePointAt(0)?.toString(16)}`,
  )
}

/** Case-folded form of a name, equal for names that differ in case alone. */
export function foldCase(username: string): string {
  return Array.from(username, (letter) => {
    const upper = letter.toUpperCase()
    return (Array.from(upper).length === 1 ? upper : letter).toLowerCase()
  }).join('')
}
