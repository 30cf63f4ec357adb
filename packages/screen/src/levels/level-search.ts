import type { Span, TextScanner } from '../automaton/text-scanner.ts'
import { RestScanner } from '../rest-scanner.ts'
import type { SearchBudget } from '../search-budget.ts'
import type { JsonParts } from './json-parts.ts'
import { scannerOf, type TextSearch } from '../text-search.ts'

/** What a match costs; see {@link SearchBudget}. */
const MATCH_COST = 600

/** A search of a screen in one text, and the index of its rule. */
export interface LevelSearch {
  readonly search: TextSearch
  readonly rule: number
  /** What it may cost at all levels together. */
  readonly budget: SearchBudget
}

/**
 * Number of units after an escape until the searches of the next level are compared with those of this level for the first
 * time; each time later it is twice as many. They begin anew at the next escape, which costs as much as to search so many.
 */
export const COMPARED_AFTER = 64

/** What the levels of one text share. */
export interface LevelRules {
  readonly searches: readonly LevelSearch[]
  /** Those that also search each string of JSON by itself. */
  readonly ofStrings: readonly LevelSearch[]
  /** Notes the JSON in the text; absent if only the depth at its end is needed. */
  readonly parts?: JsonParts
  /** In place of {@link COMPARED_AFTER}. */
  readonly comparedAfter?: number
}

/** A match in the whole text, at whichever level it was found. */
export interface LevelMatch {
  readonly span: Span
  readonly rule: number
  readonly kind: string
  /** How many times the escapes of the text were resolved before the match was found. */
  readonly level: number
}

/** A match of a scanner, and the same match in the whole text. */
interface MappedMatch {
  readonly found: Span
  readonly span: Span
  readonly toText: (position: number) => number
}

/** The scanners that read one text together. Positions are those of the level; the text begins at `offset`. */
export class LevelSearches {
  readonly #offset: number
  readonly scanners: readonly { scanner: TextScanner; readonly of: LevelSearch }[]

  constructor(offset: number, scanners: LevelSearches['scanners']) {
    this.#offset = offset
    this.scanners = scanners
  }

  /** Begins the searches at this position, as at the beginning of a text. */
  static begin(offset: number, searches: readonly LevelSearch[]): LevelSearches {
    return new LevelSearches(
      offset,
      searches.map((of) => ({ scanner: scannerOf(of.search, of.budget), of })),
    )
  }

  /**
   * The given ones of these searches, in the same state, for a text that is the same from what they still need on. Its
   * positions are those of this text less `shift`.
   */
  fork(shift: number, searches: readonly LevelSearch[]): LevelSearches {
    const scanners = this.scanners.filter(({ of }) => searches.includes(of))
    return new LevelSearches(
      this.#offset - shift,
      scanners.map(({ scanner, of }) => ({ scanner: scanner.fork(), of })),
    )
  }

  /**
   * Whether these searches find from now on what `others` find, if their texts are the same from the position `from` on
   * and the positions of the other text are those of this text and `shift`.
   */
  meet(others: LevelSearches, shift: number, from: number): boolean {
    const difference = this.#offset + shift - others.#offset
    return this.scanners.every(({ scanner, of }) => {
      const other = others.scanners.find((one) => one.of === of)
      return other !== undefined && scanner.meets(other.scanner, difference, from - this.#offset)
    })
  }

  /** Ends the searches, because others find the same from now on. */
  leave(): void {
    for (const { scanner } of this.scanners) scanner.leave()
  }

  /** Searches a text that begins at the position `base`. */
  scan(text: string, base: number, isEnd: boolean): void {
    for (const one of this.scanners) {
      const { budget } = one.of
      const { spans } = one.scanner
      const known = spans.length
      if (!budget.isOver) one.scanner.scan(text, base - this.#offset, isEnd)
      if (spans.length > known) budget.spend(MATCH_COST * (spans.length - known))
      if (!budget.isOver) continue
      if (!(one.scanner instanceof RestScanner)) {
        one.scanner.leave()
        one.scanner = new RestScanner(one.scanner.decided, one.scanner.spans)
      }
      one.scanner.scan(text, base - this.#offset, isEnd)
    }
  }

  /** The position from which the text is still needed. */
  get needed(): number {
    let needed = Number.POSITIVE_INFINITY
    for (const { scanner } of this.scanners) needed = Math.min(needed, scanner.needed)
    return this.#offset + needed
  }

  /** The position before which all matches of these rules are known; `of` says for each rule whether it is meant. */
  decided(of: readonly boolean[]): number {
    let decided = Number.POSITIVE_INFINITY
    for (const { scanner, of: search } of this.scanners)
      if (of[search.rule]) decided = Math.min(decided, scanner.decided)
    return this.#offset + decided
  }

  /** Takes the new matches. With `toText`, it gives the positions in the whole text; matches that grow are kept. */
  take(
    level: number,
    found: LevelMatch[],
    growing: MappedMatch[],
    toText: ((position: number) => number) | undefined,
  ): void {
    for (const { scanner, of } of this.scanners) {
      const { rule, search } = of
      const { kind } = search
      if (scanner.spans.length === 0) continue
      for (const one of scanner.spans) {
        if (!toText) {
          found.push({ span: one, rule, kind, level })
          continue
        }
        const mapped = { found: one, span: { ...one }, toText: (at: number) => toText(at + this.#offset) }
        mapped.span.start = mapped.toText(one.start)
        updateMatch(mapped)
        found.push({ span: mapped.span, rule, kind, level })
        if (one.isOpen) growing.push(mapped)
      }
      scanner.spans.length = 0
    }
  }
}

/** Brings a match in the whole text up to date; returns whether it may still grow. */
export function updateMatch({ found, span, toText }: MappedMatch): boolean {
  span.end = toText(found.end)
  span.isOpen = found.isOpen
  return found.isOpen
}

export type { MappedMatch }
