/** Maximum sizes of texts that are written over HTTP, in bytes of UTF-8. `docs/api.md: Limits`. */
export const TEXT_BYTE_LIMITS = Object.freeze({
  /** Maximum bytes of a text that has no maximum of its own. */
  plain: 2048,
  /** Maximum bytes of a provider's key. */
  providerKey: 8192,
  /** Maximum bytes of the list of addresses from which a token may be used. */
  addresses: 16_384,
  /** Maximum bytes of a list, a mapping, several keys, or a system prompt. */
  list: 65_536,
})

/** Whether a text has at most `bytes` bytes. */
export function fitsInBytes(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && Buffer.byteLength(text) <= bytes)
}

/** Whether a text has at most `most` code points, which is what providers count as characters. */
export function fitsInCodePoints(text: string, most: number): boolean {
  return text.length <= most || (text.length <= 2 * most && Array.from(text).length <= most)
}

let segmenter: Intl.Segmenter | undefined

/**
 * Number of characters as people see them: an emoji that consists of several code points counts as one, and
 * so does a letter with accents.
 */
export function characterCount(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  // Created on demand, because it loads the rules of all scripts.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  let count = 0
  for (const _ of segmenter.segment(text)) count += 1
  return count
}
