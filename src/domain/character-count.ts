let segmenter: Intl.Segmenter | undefined

/** Number of characters that a person sees: an emoji of several parts is one, as is a letter with accents. */
export function characterCount(text: string): number {
  // Created at first use, as it loads the rules of all scripts.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  let count = 0
  for (const _ of segmenter.segment(text)) count += 1
  return count
}
