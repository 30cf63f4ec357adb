import { matchesWildcard } from './matches-wildcard.ts'
import { characterCount } from './text-length.ts'

/** Maximum number of `%` in a pattern. */
const MAX_WILDCARDS = 2
/** Minimum number of characters other than `%`. A composed emoji counts as one. */
const MIN_OTHERS = 2

/** Whether a pattern contains `%`, so that it can match several texts. */
export function hasWildcard(pattern: string): boolean {
  return pattern.includes('%')
}

/**
 * Describes the first rule that a pattern violates; undefined if it is valid. `docs/api.md: Token
 * management`.
 */
export function patternError(pattern: string): string | undefined {
  if (!hasWildcard(pattern)) return undefined
  if (pattern.includes('%%')) return 'expected no two % in a row'
  const pieces = pattern.split('%')
  if (pieces.length - 1 > MAX_WILDCARDS) return `expected at most ${MAX_WILDCARDS} %`
  if (characterCount(pieces.join('')) < MIN_OTHERS) {
    return `expected at least ${MIN_OTHERS} characters beside %`
  }
  return undefined
}

/**
 * Whether a pattern matches a whole text. `%` matches any number of characters; all other characters,
 * including `_` and `\`, match themselves.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  return matchesWildcard('%', pattern, text)
}

/**
 * Whether a pattern matches a whole text, regardless of case and of whether accents are separate code points.
 */
export function matchesPatternInAnyCase(pattern: string, text: string): boolean {
  return matchesPattern(caseFolded(pattern), caseFolded(text))
}

// Upper case comes last, because it turns ß into SS and unifies both small sigmas.
function caseFolded(text: string): string {
  return text.normalize('NFC').toLowerCase().toUpperCase()
}
