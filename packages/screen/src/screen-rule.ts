import type { LevelMatch } from './levels/level-search.ts'
import type { Rule } from './rule.ts'

/**
 * What a rule does with its matches. `redact` writes a fixed text instead, `replace` writes a token that
 * stands for the value, `flag` only counts, `block` ends the text before the match.
 */
export type RuleAction = 'redact' | 'replace' | 'flag' | 'block'

/** A rule by which texts are screened, with the action for its matches. */
export interface ScreenRule {
  readonly rule: Rule
  readonly do: RuleAction
  /** Text that the action `redact` writes in place of a match; `[REDACTED]` by default. */
  readonly with?: string
}

/** A match that was found in a text. `rule` is the index of its rule. */
export type FoundMatch = LevelMatch

/** Orders matches by start, then by rule: the order in which they are applied. */
export function compareByStart(a: FoundMatch, b: FoundMatch): number {
  return a.span.start - b.span.start || a.rule - b.rule
}
