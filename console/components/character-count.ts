const segmenter = new Intl.Segmenter()

/** The number of characters as a person counts them. */
export function characterCount(text: string): number {
  return [...segmenter.segment(text)].length
}
