let segmenter: Intl.Segmenter | undefined

/**
 * How many characters a person sees: an emoji of several parts is one, and so is a letter with its accents.
 */
export function characterCount(text: string): number {
  // Made when it is needed: it loads the rules of all scripts, which a start need not wait for.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  let count = 0
  for (const _ of segmenter.segment(text)) count += 1
  return count
}
