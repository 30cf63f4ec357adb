const SEGMENTER = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** How many characters a person sees: an emoji of several parts is one, and so is a letter with its accents. */
export function characterCount(text: string): number {
  let count = 0
  for (const _ of SEGMENTER.segment(text)) count += 1
  return count
}
