import type { Automaton } from './automaton.ts'
import type { GuidedSearch } from './guided-search.ts'

/**
 * Results of `CheckMatch` for a text that is not reported. `NO_MATCH`: the text is not a match.
 * `OTHER_MATCH`: it is something else, and matches within it are not reported either.
 */
export const NO_MATCH = -1
export const OTHER_MATCH = -2

/**
 * Checks the text of a possible match. Returns the position in it at which the match begins, or `NO_MATCH` or
 * `OTHER_MATCH`.
 */
export type CheckMatch = (patterns: readonly number[], text: string) => number

/** An automaton, and the limits within which a scanner uses it. The scanners of all texts can share it. */
export interface AutomatonSearch {
  readonly automaton: Automaton
  /**
   * Maximum number of characters that an attempt to match reads without success. After a match, an attempt
   * may read as many again. If `judgesEach`, this is the maximum length of a match.
   */
  readonly most: number
  readonly judge: CheckMatch | undefined
  /**
   * Whether `judge` checks each match of an attempt. Otherwise it checks only the shortest: if it rejects that, the
   * attempt ends; if not, the match is as long as possible.
   */
  readonly judgesEach: boolean
  /**
   * Whether `judge` can return `OTHER_MATCH`. A match is then certain only when the attempt to match has
   * ended.
   */
  readonly canSkip: boolean
  /**
   * Finds the same matches in linear time, also where the automaton would need too many states or attempts.
   * Undefined if the program is one of ours, on which no text costs much.
   */
  readonly guided: GuidedSearch | undefined
  /**
   * What a scanner may spend on the automaton for each character before it is guided, in units of about a
   * nanosecond.
   */
  readonly allowed: number
}
