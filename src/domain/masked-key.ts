/** Shorter keys would be told by what the mask leaves. */
const SHORTEST_TOLD = 9

/**
 * An API key (with `sk-`) as lists show it: its first four characters, ten asterisks, its last four; of a key
 * that short, the asterisks alone. `docs/api.md: Token`.
 */
export function maskedKey(key: string): string {
  const hidden = '*'.repeat(10)
  return key.length < SHORTEST_TOLD ? hidden : `${key.slice(0, 4)}${hidden}${key.slice(-4)}`
}
