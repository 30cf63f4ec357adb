import type { Span } from './automaton/text-scanner.ts'
import { escaped, unescaped } from './levels/escapes.ts'
import { type JsonPart, JsonParts } from './levels/json-parts.ts'
import { TextLevel } from './levels/text-level.ts'
import type { Pseudonyms } from './pseudonyms.ts'
import { SearchBudget } from './search-budget.ts'
import { compareByStart, type FoundMatch, type ScreenRule } from './screen-rule.ts'
import { isOfDetector } from './text-search.ts'

const DEFAULT_WITH = '[REDACTED]'

/** The rules of a stream, in order. */
export interface StreamScreenRules {
  readonly rules: readonly ScreenRule[]
  /** Whether text is held back until the rule cannot match it any more. */
  readonly holds: (rule: ScreenRule) => boolean
}

/** Receives the output of a stream, with original text and replacements in separate calls. */
export interface ScreenedTextReceiver {
  /** Receives a part of the original text, and its position there. */
  readonly keep: (text: string, position: number) => void
  /** Receives the replacement of a match. */
  readonly write: (text: string) => void
}

/** The first of several matches that overlap, and where what takes their place begins. */
interface MatchGroup {
  readonly first: FoundMatch
  readonly start: number
}

/** How a stream reads its text, and who hears of it. */
export interface ScreenStreamOptions {
  /** Whether the text is expected to be JSON, such as the arguments of a tool. */
  readonly isJson?: boolean
  readonly sink?: ScreenedTextReceiver
  /** Receives each match when it is counted. Its end may still change. */
  readonly onMatch?: (match: FoundMatch) => unknown
}

/**
 * Screens one text that arrives in pieces, as it stands and with its escapes resolved (`TextLevel`). Each character is
 * passed on as soon as no rule can match it any more. The result does not depend on how the text is cut into
 * pieces. What takes the place of a match is escaped as the text around it, and JSON stays JSON: of a match that is
 * more than a part of one string, its brackets, commas, colons and quotes stay.
 */
export class ScreenStream {
  readonly counts: number[]
  readonly #screen: StreamScreenRules
  readonly #pseudonyms: Pseudonyms | undefined
  readonly #sink: ScreenedTextReceiver | undefined
  readonly #onMatch: ((match: FoundMatch) => unknown) | undefined
  /** The text as it stands; the further levels follow from it. */
  readonly #level: TextLevel
  readonly #budgets: readonly SearchBudget[]
  readonly #parts = new JsonParts()
  /** Whether a rule holds text back, by its index; the others only count. */
  readonly #isHolding: readonly boolean[]
  readonly #found: FoundMatch[] = []
  #alsoFound: FoundMatch[] = []
  #taken: FoundMatch[] = []
  #growing: FoundMatch[] = []
  /** End of the last match of each rule, by the index of the rule. */
  readonly #ends: number[]
  #text = ''
  /** Position in the whole text at which `#text`, the part that is still in memory, begins. */
  #base = 0
  /** Text before this position was passed on or replaced. */
  #passed = 0
  /** End of the latest match that was replaced. */
  #covered = 0
  #blockedBy: number | undefined
  /** Text before this position was read at all levels, so that the JSON in it is known. */
  #settled = 0
  /** What has to be written in place of a match, as soon as a string or a number begins that is a part of it. */
  #written: ((depth: number) => string) | undefined
  /** Where the string ends that stands in the place of a number of JSON. */
  #quoted: { readonly end: number; readonly depth: number } | undefined
  /**
   * A group of overlapping matches; a replacement token takes the place of the first one. `looked` is the
   * number of matches that were examined, `end` is where the group ends, and `open` contains the matches that
   * may still grow.
   */
  #run: { readonly first: FoundMatch; looked: number; end: number; open: Span[] } | undefined

  /**
   * @param pseudonyms Creates the replacement tokens of rules with the action `replace`. Text is then held
   * back until the
   * whole match is known.
   */
  constructor(
    screen: StreamScreenRules,
    pseudonyms?: Pseudonyms,
    { isJson = false, sink, onMatch }: ScreenStreamOptions = {},
  ) {
    this.#sink = sink
    this.#onMatch = onMatch
    this.#screen = screen
    this.#pseudonyms = pseudonyms
    this.counts = screen.rules.map(() => 0)
    this.#ends = screen.rules.map(() => 0)
    this.#isHolding = screen.rules.map((rule) => screen.holds(rule))
    const ofDetectors = new SearchBudget()
    const searches = screen.rules.flatMap(({ rule }, index) =>
      rule.searches.map((search) => {
        const budget = isOfDetector(search) ? ofDetectors : new SearchBudget()
        return { search, rule: index, budget }
      }),
    )
    this.#budgets = [...new Set(searches.map(({ budget }) => budget))]
    const ofStrings = searches.filter(({ search }) => search.isOfStrings)
    this.#level = new TextLevel({ searches, ofStrings, parts: this.#parts }, undefined, isJson)
  }

  /**
   * Index of the rule that blocked the rest of the text. Only what was returned until then may be passed on.
   */
  get blockedBy(): number | undefined {
    return this.#blockedBy
  }

  /** Number of characters that were pushed, but neither returned nor replaced so far. */
  get held(): number {
    return this.#blockedBy === undefined ? this.#base + this.#text.length - this.#passed : 0
  }

  /**
   * Number of characters in memory, including those that rules which only count still need. The maximum is
   * the largest `most` of all rules.
   */
  get retained(): number {
    return this.#text.length
  }

  /** Screens the next piece. Returns the text that can be passed on now. */
  push(chunk: string): string {
    return this.#read(chunk, false)
  }

  /** Screens the end of the text. Returns all text that was held back. */
  end(): string {
    return this.#read('', true)
  }

  /** Screens a whole text at once. Returns the text that can be passed on. */
  whole(text: string): string {
    return this.#read(text, true)
  }

  /**
   * Screens a complete text up to the position `end`. Returns what can be passed on. If `end` is the end of
   * the text, this ends the stream.
   */
  readTo(whole: string, end: number): string {
    if (this.#blockedBy !== undefined) return ''
    const piece = whole.slice(this.#base + this.#text.length, end)
    this.#text = end < whole.length ? whole.slice(0, end) : whole
    const { result } = this.#scan(piece, end >= whole.length)
    this.#forget()
    return result
  }

  /** Frees what the levels and the parts know of text that was passed on. */
  #forget(): void {
    if (this.#blockedBy !== undefined) return
    this.#level.forget(this.#passed)
    this.#parts.forget(this.#passed)
  }

  #read(chunk: string, isEnd: boolean): string {
    if (this.#blockedBy !== undefined) return ''
    this.#text = this.#text === '' ? chunk : this.#text + chunk
    const { result, needed } = this.#scan(chunk, isEnd)
    const drop = Math.min(needed, this.#passed) - this.#base
    if (drop > 0 && this.#blockedBy === undefined) {
      this.#text = this.#text.slice(drop)
      this.#base += drop
      this.#forget()
    }
    return result
  }

  /**
   * Reads a piece, the last one of the text in memory. Returns what can be passed on, and the position from which the
   * text is still needed.
   */
  #scan(piece: string, isEnd: boolean): { readonly result: string; readonly needed: number } {
    const level = this.#level
    const length = this.#base + this.#text.length
    for (const budget of this.#budgets) budget.allow(piece.length)
    level.read(piece, this.#text, this.#base)
    if (isEnd) level.end()
    level.scan(isEnd)
    this.#settled = isEnd ? length : level.settled
    let safe = isEnd || !endsInHalf(this.#text) ? this.#settled : Math.min(this.#settled, length - 1)
    safe = Math.min(safe, level.decided(this.#isHolding))
    level.take(this.#taken)
    if (this.#taken.length > 0) this.#sort()
    if (this.#alsoFound.length > 0) this.#countFlagged(isEnd)
    return { result: this.#compose(isEnd ? Infinity : safe), needed: level.needed }
  }

  /** Puts the matches that were just found among those that wait. */
  #sort(): void {
    const taken = this.#taken
    this.#taken = []
    insertSorted(
      this.#found,
      taken.filter(({ rule }) => this.#isHolding[rule]),
    )
    insertSorted(
      this.#alsoFound,
      taken.filter(({ rule }) => !this.#isHolding[rule]),
    )
  }

  /** Counts the matches of rules that only count, if these matches cannot change any more. */
  #countFlagged(isEnd: boolean): void {
    for (const one of this.#growing) this.#grow(one)
    this.#growing = this.#growing.filter(({ span }) => span.isOpen)
    const { rules } = this.#screen
    const decided = rules.map((_, rule) =>
      isEnd || this.#isHolding[rule] ? Infinity : this.#level.decided(rules.map((_, of) => of === rule)),
    )
    this.#alsoFound = this.#alsoFound.filter((found) => {
      const isDecided = found.span.start < (decided[found.rule] as number)
      if (isDecided) this.#count(found)
      return !isDecided
    })
  }

  /**
   * Returns the text with its matches replaced, up to the position `decided`, before which all matches are
   * known.
   */
  #compose(decided: number): string {
    let safe = decided
    const found = this.#found
    if (this.#growing.length > 0) {
      for (const one of this.#growing) this.#grow(one)
      this.#growing = this.#growing.filter(({ span }) => span.isOpen)
    }
    let result = this.#hideMatched()
    let group: MatchGroup | undefined
    let done = 0
    for (; done < found.length; done++) {
      const next = found[done] as FoundMatch
      const { span, rule } = next
      if (span.start >= safe) break
      const escape = span.start >= this.#covered ? this.#level.around(span.start) : undefined
      if (escape && escape.end >= safe) {
        safe = escape.start
        break
      }
      if (escape && this.#moveTo(escape.end, done)) {
        // Another match is in its place now.
        done -= 1
        continue
      }
      const start = this.#atomStart(span.start)
      if (this.#isUnsettled(next, done, safe)) {
        safe = start
        break
      }
      this.#count(next)
      const screened = this.#screen.rules[rule] as ScreenRule
      if (screened.do === 'flag') continue
      if (span.start >= this.#covered) {
        result += this.#replaced(group)
        group = undefined
        result += this.#keep(start)
        if (screened.do !== 'block') group = { first: next, start }
      }
      if (screened.do === 'block') {
        result += this.#replaced(group)
        this.#blockedBy = rule
        this.#text = ''
        return result
      }
      this.#covered = Math.max(this.#covered, span.end)
    }
    if (done > 0) found.splice(0, done)
    result += this.#replaced(group)
    const limit = this.#atomStart(Math.min(safe, this.#base + this.#text.length))
    return limit <= this.#passed ? result : result + this.#keep(limit)
  }

  /**
   * Moves a match that begins in the middle of an escape to the end of the escape, if a match begins there once the escape
   * is resolved: the letter of `\n` looks like a part of the word after it. Returns whether it was moved.
   */
  #moveTo(end: number, at: number): boolean {
    const found = this.#found
    const match = found[at] as FoundMatch
    let to = at + 1
    let isFound = false
    for (; to < found.length && (found[to] as FoundMatch).span.start <= end; to++) {
      const { span, rule } = found[to] as FoundMatch
      isFound ||= span.start === end && this.#screen.rules[rule]?.do !== 'flag'
    }
    if (!isFound) return false
    // The others are taken first; one that has nothing left is covered by the match at the end of the escape.
    const moved = { ...match, span: movedTo(match.span, end) }
    for (let index = at; index < to - 1; index++) found[index] = found[index + 1] as FoundMatch
    found[to - 1] = moved
    return true
  }

  /** The start of the escape or of the number of JSON that has this position in its middle; else the position. */
  #atomStart(position: number): number {
    const at = this.#level.around(position)?.start ?? position
    if (this.#parts.isPlain) return at
    const part = this.#parts.at(at)
    return part.kind === 'bare' ? part.start : at
  }

  /** Returns what takes the place of a group of matches that overlap, as far as they have been read. */
  #replaced(group: MatchGroup | undefined): string {
    if (!group) return this.#hideMatched()
    const { first, start } = group
    const screened = this.#screen.rules[first.rule] as ScreenRule
    this.#written = (depth) =>
      screened.do === 'replace' && this.#pseudonyms
        ? this.#token(first, start, depth)
        : escaped(written(screened, first.kind), depth)
    if (!this.#parts.isPlain) return this.#hideMatched()
    const text = this.#write(this.#written(0))
    this.#written = undefined
    return text + this.#hideMatched()
  }

  /** Passes over the text that matches cover. Of JSON in it, the structure stays. */
  #hideMatched(): string {
    const end = Math.min(this.#covered, this.#settled)
    if (this.#parts.isPlain) {
      this.#passed = Math.max(this.#passed, end)
      return ''
    }
    let result = ''
    while (this.#passed < end) {
      const part = this.#parts.at(this.#passed)
      const to = Math.min(end, part.end)
      if (part.kind === 'structure') {
        result += this.#keep(to)
        continue
      }
      if (part.kind === 'bare') result += this.#quote(part)
      const depth = part.kind === 'bare' ? part.depth + 1 : part.depth
      if (this.#written) result += this.#write(this.#written(depth))
      this.#written = undefined
      this.#passed = to
      result += this.#endQuote()
    }
    return result
  }

  /** Begins a string in the place of a number of JSON, of which something is replaced. */
  #quote({ depth, end }: JsonPart): string {
    if (this.#quoted) return ''
    this.#quoted = { end, depth }
    return this.#write(escaped('"', depth))
  }

  #endQuote(): string {
    const quoted = this.#quoted
    if (!quoted || this.#passed < quoted.end) return ''
    this.#quoted = undefined
    return this.#write(escaped('"', quoted.depth))
  }

  /**
   * Whether it is not known yet which text a replacement token will stand for: the match may become longer,
   * or overlapping matches may begin or grow. Each match is examined once, even if this is called repeatedly.
   */
  #isUnsettled(next: FoundMatch, at: number, safe: number): boolean {
    const { span } = next
    if (safe === Infinity || !this.#pseudonyms || span.start < this.#covered) return false
    if (this.#screen.rules[next.rule]?.do !== 'replace') return false
    if (this.#run?.first !== next) this.#run = { first: next, looked: 0, end: span.end, open: [] }
    const run = this.#run
    for (;;) {
      const one = this.#found[at + run.looked]
      if (!one || one.span.start >= Math.min(safe, Math.max(run.end, span.end))) break
      run.looked += 1
      if (this.#screen.rules[one.rule]?.do === 'flag') continue
      run.end = Math.max(run.end, one.span.end)
      if (one.span.isOpen) run.open.push(one.span)
    }
    for (const { end } of run.open) run.end = Math.max(run.end, end)
    run.open = run.open.filter(({ isOpen }) => isOpen)
    return run.open.length > 0 || run.end > safe
  }

  /** Updates the end position of a counted match that has become longer. */
  #grow({ span, rule }: FoundMatch): void {
    this.#ends[rule] = Math.max(this.#ends[rule] as number, span.end)
    if (this.#screen.rules[rule]?.do !== 'flag') this.#covered = Math.max(this.#covered, span.end)
  }

  #count(found: FoundMatch): void {
    const { span, rule } = found
    const end = this.#ends[rule] as number
    if (span.start >= end) this.counts[rule] = (this.counts[rule] as number) + 1
    this.#ends[rule] = Math.max(end, span.end)
    if (span.isOpen) this.#growing.push(found)
    this.#onMatch?.(found)
  }

  #token({ kind, level }: FoundMatch, start: number, depth: number): string {
    const value = this.#text.slice(start - this.#base, this.#covered - this.#base)
    return this.#pseudonyms?.tokenFor(kind, unescaped(value, Math.max(level, depth))) ?? ''
  }

  /** Passes the text on, up to this position. */
  #keep(to: number): string {
    if (to <= this.#passed) return ''
    let result = ''
    if (this.#quoted && this.#quoted.end < to) result = this.#keep(this.#quoted.end)
    const from = this.#passed
    const first = from - this.#base
    const last = to - this.#base
    const kept = first === 0 && last === this.#text.length ? this.#text : this.#text.slice(first, last)
    if (kept !== '') this.#sink?.keep(kept, from)
    this.#passed = to
    return result + kept + this.#endQuote()
  }

  #write(text: string): string {
    this.#sink?.write(text)
    return text
  }
}

/** Inserts matches in their order. There may be many that wait; only those after the first new one are moved. */
function insertSorted(into: FoundMatch[], added: FoundMatch[]): void {
  if (added.length === 0) return
  if (added.length > 1) added.sort(compareByStart)
  const [first] = added
  const later = into.findLastIndex((one) => compareByStart(one, first as FoundMatch) <= 0) + 1
  const rest = into.splice(later)
  const all = rest.length === 0 ? added : [...added, ...rest].sort(compareByStart)
  for (const one of all) into.push(one)
}

/** The same match with another start; what it gains is seen there too. */
function movedTo(span: Span, start: number): Span {
  return {
    start,
    get end() {
      return span.end
    },
    get isOpen() {
      return span.isOpen
    },
  }
}

function written(screened: ScreenRule, kind: string): string {
  return screened.do === 'replace' ? `[[${kind}]]` : (screened.with ?? DEFAULT_WITH)
}

function endsInHalf(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800
}
