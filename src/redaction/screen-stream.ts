import type { Span, TextScanner } from './automaton/scanner.ts'
import type { Pseudonyms } from './pseudonyms.ts'
import { scannerOf } from './text-search.ts'
import { compareByStart, type FoundMatch, type ScreenRule } from './screen-rule.ts'

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

interface RuleScanner {
  readonly scanner: TextScanner
  readonly rule: number
  readonly kind: string
}

/**
 * Screens one text that arrives in pieces. Each character is passed on as soon as no rule can match it any
 * more. The result does not depend on how the text is cut into pieces.
 */
export class ScreenStream {
  readonly counts: number[]
  readonly #screen: StreamScreenRules
  readonly #pseudonyms: Pseudonyms | undefined
  readonly #sink: ScreenedTextReceiver | undefined
  /** Scanners of the rules that hold text back; `#counting` has those of the rules that only count. */
  readonly #holding: RuleScanner[] = []
  readonly #counting: RuleScanner[] = []
  readonly #found: FoundMatch[] = []
  #alsoFound: FoundMatch[] = []
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
  constructor(screen: StreamScreenRules, pseudonyms?: Pseudonyms, sink?: ScreenedTextReceiver) {
    this.#sink = sink
    this.#screen = screen
    this.#pseudonyms = pseudonyms
    this.counts = screen.rules.map(() => 0)
    this.#ends = screen.rules.map(() => 0)
    for (const [rule, screened] of screen.rules.entries()) {
      const scanners = screen.holds(screened) ? this.#holding : this.#counting
      for (const search of screened.rule.searches)
        scanners.push({ scanner: scannerOf(search), rule, kind: search.kind })
    }
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
    this.#text = end < whole.length ? whole.slice(0, end) : whole
    return this.#scan(end >= whole.length).result
  }

  #read(chunk: string, isEnd: boolean): string {
    if (this.#blockedBy !== undefined) return ''
    this.#text = this.#text === '' ? chunk : this.#text + chunk
    const { result, needed } = this.#scan(isEnd)
    const drop = Math.min(needed, this.#passed) - this.#base
    if (drop > 0 && this.#blockedBy === undefined) {
      this.#text = this.#text.slice(drop)
      this.#base += drop
    }
    return result
  }

  /**
   * Scans the text in memory. Returns what can be passed on, and the position from which the text is still
   * needed.
   */
  #scan(isEnd: boolean): { readonly result: string; readonly needed: number } {
    const text = this.#text
    const length = this.#base + text.length
    let safe = isEnd || !endsInHalf(text) ? length : length - 1
    let needed = length
    for (const { scanner, rule, kind } of this.#holding) {
      scanner.scan(text, this.#base, isEnd)
      safe = Math.min(safe, scanner.decided)
      needed = Math.min(needed, scanner.needed)
      if (scanner.spans.length > 0) this.#take(scanner, rule, kind, this.#found)
    }
    for (const { scanner, rule, kind } of this.#counting) {
      scanner.scan(text, this.#base, isEnd)
      needed = Math.min(needed, scanner.needed)
      if (scanner.spans.length > 0) this.#take(scanner, rule, kind, this.#alsoFound)
    }
    if (this.#alsoFound.length > 0) this.#countFlagged(isEnd)
    return { result: this.#compose(isEnd ? Infinity : safe), needed }
  }

  /** Counts the matches of rules that only count, if these matches cannot change any more. */
  #countFlagged(isEnd: boolean): void {
    if (this.#growing.length > 0) this.#grow()
    const decided = new Map<number, number>()
    for (const { scanner, rule } of this.#counting)
      decided.set(rule, Math.min(decided.get(rule) ?? Infinity, isEnd ? Infinity : scanner.decided))
    this.#alsoFound = this.#alsoFound.filter((found) => {
      const isDecided = found.span.start < (decided.get(found.rule) as number)
      if (isDecided) this.#count(found)
      return !isDecided
    })
  }

  #take(scanner: TextScanner, rule: number, kind: string, into: FoundMatch[]): void {
    const [first] = scanner.spans
    if (!first) return
    // There may be many waiting matches; only those after the first new one can be in the wrong order.
    const later = into.findLastIndex(({ span }) => span.start < first.start) + 1
    const added = into.splice(later)
    for (const span of scanner.spans) added.push({ span, rule, kind })
    scanner.spans.length = 0
    if (added.length > 1) added.sort(compareByStart)
    for (const one of added) into.push(one)
  }

  /**
   * Returns the text with its matches replaced, up to the position `decided`, before which all matches are
   * known.
   */
  #compose(decided: number): string {
    let safe = decided
    const base = this.#base
    const found = this.#found
    if (this.#growing.length > 0) this.#grow()
    let result = ''
    let replaced: FoundMatch | undefined
    let done = 0
    for (; done < found.length; done++) {
      const next = found[done] as FoundMatch
      const { span, rule, kind } = next
      if (span.start >= safe) break
      if (this.#isUnsettled(next, done, safe)) {
        safe = span.start
        break
      }
      this.#count(next)
      const screened = this.#screen.rules[rule] as ScreenRule
      if (screened.do === 'flag') continue
      if (span.start >= this.#covered) {
        if (replaced) result += this.#token(replaced)
        replaced = undefined
        result += this.#keep(this.#passed, span.start)
        if (screened.do === 'replace' && this.#pseudonyms) replaced = next
        else if (screened.do !== 'block') result += this.#write(written(screened, kind))
      }
      if (screened.do === 'block') {
        if (replaced) result += this.#token(replaced)
        this.#blockedBy = rule
        this.#text = ''
        return result
      }
      this.#covered = Math.max(this.#covered, span.end)
      this.#passed = this.#covered
    }
    if (done > 0) found.splice(0, done)
    if (replaced) result += this.#token(replaced)
    const limit = Math.min(safe, base + this.#text.length)
    if (limit <= this.#passed) return result
    const rest = this.#keep(this.#passed, limit)
    this.#passed = limit
    return result === '' ? rest : result + rest
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

  /** Updates the end positions of counted matches that have become longer. */
  #grow(): void {
    for (const { span, rule } of this.#growing) {
      this.#ends[rule] = Math.max(this.#ends[rule] as number, span.end)
      if (this.#screen.rules[rule]?.do === 'flag') continue
      this.#covered = Math.max(this.#covered, span.end)
      this.#passed = Math.max(this.#passed, this.#covered)
    }
    this.#growing = this.#growing.filter(({ span }) => span.isOpen)
  }

  #count(found: FoundMatch): void {
    const { span, rule } = found
    const end = this.#ends[rule] as number
    if (span.start >= end) this.counts[rule] = (this.counts[rule] as number) + 1
    this.#ends[rule] = Math.max(end, span.end)
    if (span.isOpen) this.#growing.push(found)
  }

  #token({ span, kind }: FoundMatch): string {
    const value = this.#text.slice(span.start - this.#base, this.#covered - this.#base)
    return this.#write(this.#pseudonyms?.tokenFor(kind, value) ?? '')
  }

  #keep(from: number, to: number): string {
    const first = from - this.#base
    const last = to - this.#base
    const kept = first === 0 && last === this.#text.length ? this.#text : this.#text.slice(first, last)
    if (kept !== '') this.#sink?.keep(kept, from)
    return kept
  }

  #write(text: string): string {
    this.#sink?.write(text)
    return text
  }
}

function written(screened: ScreenRule, kind: string): string {
  return screened.do === 'replace' ? `[[${kind}]]` : (screened.with ?? DEFAULT_WITH)
}

function endsInHalf(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800
}
