/** Minimum length of keys of which characters are shown; of a shorter key the mask would reveal most. */
const MIN_SHOWN_LENGTH = 9

/**
 * Masks an API key (with `sk-`) for lists: the first four characters, ten asterisks, and the last four; only
 * asterisks for a very short key. `docs/api.md: Token`.
 */
export function maskedKey(key: string): string {
  const hidden = '*'.repeat(10)
  return key.length < MIN_SHOWN_LENGTH ? hidden : `${key.slice(0, 4)}${hidden}${key.slice(-4)}`
}
