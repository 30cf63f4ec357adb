let segmenter: Intl.Segmenter | undefined

/**
 * Number of characters as people see them: an emoji composed of several code points is one, and so is a
 * letter with accents.
 */
export function characterCount(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  // Created at first use, because it loads the rules of all scripts.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  let count = 0
  for (const _ of segmenter.segment(text)) count += 1
  return count
}
