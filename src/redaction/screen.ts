import type { Pseudonyms } from './pseudonyms.ts'
import { compareByStart, type FoundMatch, type ScreenRule } from './screen-rule.ts'
import { scannerOf } from './text-search.ts'
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

  /**
   * The matches of a text, ordered by start, then by rule. Overlapping matches of one rule are joined. Throws
   * `TooManyMatches` soon after the searches of all rules have found more than `maxMatches`.
   */
  find(text: string, maxMatches = Number.POSITIVE_INFINITY): readonly Match[] {
    const matches: { start: number; end: number; rule: number; kind: string }[] = []
    const lastOf: ({ start: number; end: number } | undefined)[] = this.rules.map(() => undefined)
    for (const { span, rule, kind } of this.#found(text, maxMatches)) {
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

  /** Screens a complete text. With `pseudonyms`, rules with the action `replace` write replacement tokens. */
  apply(text: string, pseudonyms?: Pseudonyms): ScreeningResult {
    const stream = new ScreenStream(this, pseudonyms)
    const screened = stream.whole(text)
    return { text: screened, counts: stream.counts, blockedBy: stream.blockedBy }
  }

  /**
   * Opens a stream that screens one text. With `pseudonyms`, rules with the action `replace` write
   * replacement tokens.
   */
  stream(pseudonyms?: Pseudonyms): ScreenStream {
    return new ScreenStream(this, pseudonyms)
  }

  #found(text: string, maxMatches: number): readonly FoundMatch[] {
    const found: FoundMatch[] = []
    for (const [rule, { rule: compiled }] of this.rules.entries()) {
      for (const search of compiled.searches) {
        const scanner = scannerOf(search)
        for (let end = 0; end < text.length; ) {
          end = Math.min(text.length, end + STEP_LENGTH)
          const { needed } = scanner
          scanner.scan(text.slice(needed, end), needed, end === text.length)
          if (found.length + scanner.spans.length > maxMatches) throw new TooManyMatches()
        }
        for (const span of scanner.spans) found.push({ span, rule, kind: search.kind })
      }
    }
    return found.length > 1 ? found.sort(compareByStart) : found
  }
}
