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
export function isWithin(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && Buffer.byteLength(text) <= bytes)
}
