const BASE62 = /^[0-9A-Za-z]{1,128}$/

/**
 * Extracts the lookup key from the sent text: without any leading `sk-`, and up to the first hyphen.
 * Undefined for malformed text. `docs/api.md: Authentication`, rule 4.
 */
export function lookupKey(sent: string): string | undefined {
  let start = 0
  while (sent.startsWith('sk-', start)) start += 3
  const hyphen = sent.indexOf('-', start)
  const key = sent.slice(start, hyphen === -1 ? undefined : hyphen)
  return BASE62.test(key) ? key : undefined
}
