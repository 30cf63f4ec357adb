/**
 * Whether a pattern matches a whole text. The wildcard matches any number of characters; all other characters
 * match themselves.
 */
export function matchesWildcard(wildcard: '%' | '*', pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split(wildcard)
  const last = rest.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let at = first.length
  // Match each text between two wildcards as early as possible, which leaves the most for the texts that follow.
  for (const piece of rest) {
    const found = text.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return text.length - at >= last.length && text.endsWith(last)
}
