import type { Span } from './automaton/scanner.ts'
import type { Rule } from './rule.ts'

/**
 * What happens to the matches of a rule. `replace` writes a token that stands for the value, `flag` only counts, `block`
 * ends the text before the match.
 */
export type Action = 'redact' | 'replace' | 'flag' | 'block'

/** A rule of a screen. */
export interface ScreenRule {
  readonly rule: Rule
  readonly do: Action
  /** What `redact` writes; `[REDACTED]` by default. */
  readonly with?: string
}

/** A match as a scanner finds it, with its place in the list of rules. */
export interface Found {
  readonly span: Span
  readonly rule: number
  readonly kind: string
}

/** The order in which matches count. */
export function byStart(a: Found, b: Found): number {
  return a.span.start - b.span.start || a.rule - b.rule
}
