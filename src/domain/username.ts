/** Scripts whose letters take another form where U+200C or U+200D stands between them. */
const JOINING = [
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

const JOINERS = new RegExp(String.raw`(?<=[${JOINING}])[\u200C\u200D](?=[${JOINING}])`, 'gu')

/** Controls of direction, and what is not seen; variation selectors stand in emoji, and are let be. */
const UNSEEN = /[\p{Bidi_Control}[\p{Default_Ignorable_Code_Point}--\p{Variation_Selector}]]/v

/** Whether a user's name shows all of itself, in the order that it is written in. `docs/api.md: Users`. */
export function isFullyVisible(username: string): boolean {
  return !UNSEEN.test(username.replaceAll(JOINERS, ''))
}

/** A name with the code points in place of what is not seen in it: `ann\u202e`. */
export function escapeInvisible(username: string): string {
  return username.replaceAll(
    new RegExp(UNSEEN, 'gv'),
    (unseen) => `\\u${unseen.codePointAt(0)?.toString(16)}`,
  )
}

/** A name without its case: names that differ in case alone have the same. */
export function foldCase(username: string): string {
  return Array.from(username, (letter) => {
    const upper = letter.toUpperCase()
    return (Array.from(upper).length === 1 ? upper : letter).toLowerCase()
  }).join('')
}
