/** Minimum length of keys that show characters: the mask would reveal most of a shorter one. */
const MIN_SHOWN_LENGTH = 9

/**
 * An API key (with `sk-`) as lists show it: first four characters, ten asterisks, last four; asterisks alone
 * for a very short key. `docs/api.md: Token`.
 */
export function maskedKey(key: string): string {
  const hidden = '*'.repeat(10)
  return key.length < MIN_SHOWN_LENGTH ? hidden : `${key.slice(0, 4)}${hidden}${key.slice(-4)}`
}
