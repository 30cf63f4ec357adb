import { characterCount } from './character-count.ts'

/** `%` in one pattern. */
const MOST_WILDCARDS = 2
/** Characters beside them, as a person counts. */
const LEAST_OTHERS = 2

/** Whether a pattern matches more than one text. */
export function hasWildcard(pattern: string): boolean {
  return pattern.includes('%')
}

/**
 * What a pattern breaks of the rules of a search, in words; undefined if nothing. `docs/api.md: Token
 * management`.
 */
export function patternError(pattern: string): string | undefined {
  if (!hasWildcard(pattern)) return undefined
  if (pattern.includes('%%')) return 'expected no two % in a row'
  const pieces = pattern.split('%')
  if (pieces.length - 1 > MOST_WILDCARDS) return `expected at most ${MOST_WILDCARDS} %`
  if (characterCount(pieces.join('')) < LEAST_OTHERS) {
    return `expected at least ${LEAST_OTHERS} characters beside %`
  }
  return undefined
}

/**
 * Whether a pattern matches the whole of a text: `%` stands for any characters or none, everything else for
 * itself, `_` and `\` too.
 */
export function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('%')
  const last = rest.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let at = first.length
  // The earliest place of each leaves the most for the next.
  for (const piece of rest) {
    const found = text.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return text.length - at >= last.length && text.endsWith(last)
}

/** The same without regard to case, and to how accents are encoded. */
export function matchesAnyCase(pattern: string, text: string): boolean {
  return matches(folded(pattern), folded(text))
}

// To capitals last: only there ß is SS, and both small sigmas are one.
function folded(text: string): string {
  return text.normalize('NFC').toLowerCase().toUpperCase()
}
