import type { Pseudonyms } from './pseudonyms.ts'
import { compareByStart, type FoundMatch, type ScreenRule } from './screen-rule.ts'
import { ScreenStream } from './screen-stream.ts'

/**
 * A match: its start and end in UTF-16 code units, the index of its rule, and its kind in capitals (`EMAIL`,
 * `SECRET`).
 */
export interface Match {
  readonly start: number
  readonly end: number
  readonly rule: number
  readonly kind: string
}

/** Thrown if a text has more matches than the caller allows. */
export class TooManyMatches extends Error {}

/** Characters that are searched before the number of matches is checked. */
const STEP_LENGTH = 65_536

/** Result of screening a text. */
export interface ScreeningResult {
  /** The text that may be passed on. The same string if nothing was changed. */
  readonly text: string
  /** Number of matches by the index of the rule. Overlapping matches of one rule count once. */
  readonly counts: readonly number[]
  /** Index of the rule that blocked the rest of the text; undefined if none did. */
  readonly blockedBy: number | undefined
}

/** An ordered list of rules with their actions. Any number of texts and streams can share it. */
export class TextScreen {
  readonly rules: readonly ScreenRule[]
  /** Maximum number of characters that a stream holds back. */
  readonly most: number
  /** Whether a rule can end a text. */
  readonly canBlock: boolean

  constructor(rules: readonly ScreenRule[]) {
    this.rules = rules
    this.canBlock = rules.some((rule) => rule.do === 'block')
    this.most = Math.max(0, ...rules.map((rule) => (this.holds(rule) ? rule.rule.most : 0)))
  }

  /**
   * Whether text waits until it is certain whether this rule matches it. For a rule that only counts its matches
   * this is necessary if another rule can block, because matches in text after the block must not be counted.
   */
  holds(rule: ScreenRule): boolean {
    return rule.do !== 'flag' || this.canBlock
  }

  /** The matches of a text, ordered by start, then by rule. Overlapping matches of one rule are joined. */
  find(text: string): readonly Match[] {
    const counting = this.rules.map((rule): ScreenRule => ({ ...rule, do: 'flag' }))
    const found: FoundMatch[] = []
    const onMatch = (match: FoundMatch): unknown => found.push(match)
    new ScreenStream(new TextScreen(counting), undefined, { onMatch }).whole(text)
    const matches: { start: number; end: number; rule: number; kind: string }[] = []
    const lastOf: ({ start: number; end: number } | undefined)[] = this.rules.map(() => undefined)
    for (const { span, rule, kind } of found.sort(compareByStart)) {
      const last = lastOf[rule]
      if (last && span.start < last.end) {
        last.end = Math.max(last.end, span.end)
        continue
      }
      const match = { start: span.start, end: span.end, rule, kind }
      lastOf[rule] = match
      matches.push(match)
    }
    return matches
  }

  /**
   * Screens a complete text. With `pseudonyms`, rules with the action `replace` write replacement tokens. With `isJson`,
   * the text is expected to be JSON.
   */
  apply(text: string, pseudonyms?: Pseudonyms, isJson = false): ScreeningResult {
    const stream = new ScreenStream(this, pseudonyms, { isJson })
    const screened = stream.whole(text)
    return { text: screened, counts: stream.counts, blockedBy: stream.blockedBy }
  }

  /**
   * The text with its matches replaced. Throws `TooManyMatches` soon after there are more than `maxMatches`; so many are
   * never in memory at once.
   */
  applyWithin(text: string, maxMatches: number): string {
    return screenInSteps(new ScreenStream(this), text, maxMatches)
  }

  /**
   * Opens a stream that screens one text. With `pseudonyms`, rules with the action `replace` write
   * replacement tokens. With `isJson`, the text is expected to be JSON.
   */
  stream(pseudonyms?: Pseudonyms, isJson = false): ScreenStream {
    return new ScreenStream(this, pseudonyms, { isJson })
  }
}

/** Screens a long text step by step. Throws `TooManyMatches` soon after there are more than `maxMatches`. */
export function screenInSteps(stream: ScreenStream, text: string, maxMatches: number): string {
  let screened = ''
  for (let end = 0; end < text.length; ) {
    const from = end
    end = Math.min(text.length, end + STEP_LENGTH)
    screened += stream.push(from === 0 && end === text.length ? text : text.slice(from, end))
    if (stream.counts.reduce((sum, count) => sum + count, 0) > maxMatches) throw new TooManyMatches()
  }
  return screened + stream.end()
}
