const BASE62 = /^[0-9A-Za-z]{1,128}$/

/**
 * The lookup key in what a caller sent: every leading `sk-` is taken off, and of the rest the first segment
 * before a hyphen counts. Undefined where that is no key at all. `docs/api.md: Authentication`, rule 4.
 */
export function lookupKey(sent: string): string | undefined {
  let start = 0
  while (sent.startsWith('sk-', start)) start += 3
  const hyphen = sent.indexOf('-', start)
  const key = sent.slice(start, hyphen === -1 ? undefined : hyphen)
  return BASE62.test(key) ? key : undefined
}
