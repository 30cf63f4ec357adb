/** Maximum sizes of texts that are written over HTTP, in bytes of UTF-8. `docs/api.md: Limits`. */
export const TEXT_BYTES = Object.freeze({
  /** Any text not listed below. */
  plain: 2048,
  /** One key of a provider. */
  providerKey: 8192,
  /** The addresses from which a token may be used. */
  addresses: 16_384,
  /** A list, a mapping, several keys, or a system prompt. */
  list: 65_536,
})

/** Whether a text has at most `bytes` bytes. */
export function fitsInBytes(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && Buffer.byteLength(text) <= bytes)
}

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
