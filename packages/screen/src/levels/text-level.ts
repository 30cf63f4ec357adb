import { EscapeMap, escapeAt, isBegunEscape, MAX_LEVELS, unitOf } from './escapes.ts'
import { JsonGrammar } from './json-grammar.ts'
import {
  BARE,
  BEGUN_OPENING,
  ESCAPED_OPENING,
  FIRST_OPENING,
  HAS_STOP_IN_STRING,
  HAS_STOP_IN_TEXT,
  NOT_SPACE,
  OPENING,
  SPACE,
  STOP_IN_LAST_STRING,
  STOP_IN_STRING,
  STOP_IN_TEXT,
  indexOf,
  matchAt,
  matches,
} from './level-patterns.ts'
import type { JsonPartKind } from './json-parts.ts'
import {
  COMPARED_AFTER,
  type LevelMatch,
  type LevelRules,
  LevelSearches,
  type MappedMatch,
  updateMatch,
} from './level-search.ts'

/**
 * `text`: the level is read as text in which JSON may begin. `structure`, `string`: in JSON, outside and inside of a
 * string. `passed`: the text is structure of the level below, so that this level has nothing to read in it.
 */
type Mode = 'text' | 'structure' | 'string' | 'passed'

/** Number of units that are freed at a time. */
const FORGOTTEN = 256
/**
 * One reading of a text: as it stands (level 0), or with its escapes resolved so many times. It finds the escapes and the
 * JSON, and passes the text on to the next level, which exists only where there is an escape. Each level is at most
 * as long as the one below.
 */
export class TextLevel {
  readonly level: number
  readonly #below: TextLevel | undefined
  /** The last level. The strings of a text that is JSON have as many further levels as any other text. */
  readonly #maxLevel: number
  readonly #rules: LevelRules
  #next: TextLevel | undefined
  /** The position up to which the level was read. */
  #at: number
  /** The text from there on is that of `#unread` from the offset `#from` on. */
  #unread = ''
  #from = 0
  readonly #escapes = new EscapeMap()

  #mode: Mode = 'text'
  /** Whether only spaces have come so far: of the text, or of a string. */
  #isBeginning: boolean
  #isFreshString = false
  /** Whether the string began with a quote at the beginning of the text. */
  #isQuotation = false
  #grammar = new JsonGrammar()
  /** The depth of the text around JSON. */
  #textDepth = 0
  /** What the next level has not received yet. */
  #forNext = ''

  /**
   * The searches of the whole level; undefined while those of the level below find the same: before the first escape,
   * and after the others from where both are in the same state.
   */
  #searches: LevelSearches | undefined
  /** Whether the text is another one than that of the level below. */
  #isOther = false
  /** Where the last escape ended, and where the searches of the next level are compared with those of this level. */
  #escapeEnd = 0
  #compareAt = Infinity
  #text = ''
  #base: number
  #unscanned: string[] = []
  /** The searches of the string that is being read, and those of strings that have ended. */
  #ofString: LevelSearches | undefined
  #stringText = ''
  #stringBase = 0
  #unscannedString: string[] = []
  #ended: LevelSearches[] = []
  #growing: MappedMatch[] = []
  readonly #mapped: ((position: number) => number) | undefined

  /** @param isJson Whether the whole text is expected to be JSON, so that numbers are values also without brackets. */
  constructor(rules: LevelRules, below?: TextLevel, isJson = false) {
    this.#rules = rules
    this.#below = below
    this.level = below ? below.level + 1 : 0
    if (below) this.#mapped = (position) => this.#toText(position)
    this.#at = below ? below.#at - below.#escapes.shift : 0
    this.#base = this.#at
    this.#isBeginning = !below && !isJson
    if (!below && rules.searches.length > 0) this.#searches = LevelSearches.begin(0, rules.searches)
    this.#maxLevel = below ? below.#maxLevel : MAX_LEVELS + (isJson ? 1 : 0)
    if (!isJson) return
    this.#mode = 'structure'
    this.#note('structure', 0)
  }

  /** How many strings of JSON, one in the other, the end of the text is in. */
  get depth(): number {
    if (this.#mode === 'structure') return this.level
    return Math.max(this.#next?.depth ?? 0, this.#mode === 'string' ? this.level + 1 : this.#textDepth)
  }

  /**
   * The bounds of what has a position of the whole text in its middle and is read as one character at any level;
   * undefined if there is nothing of the kind.
   */
  around(position: number): { readonly start: number; readonly end: number } | undefined {
    const next = this.#next
    if (next && next.#isOther) return next.around(this.#escapes.above(position))
    if (Number.isInteger(position)) return undefined
    const unit = Math.floor(position)
    return { start: this.#toText(unit), end: this.#toText(unit + 1) }
  }

  /** Reads a further piece of the text. `whole` is the text of level 0 from the position `base` on, if it is searched. */
  read(piece: string, whole = '', base = 0): void {
    this.#text = whole
    this.#base = base
    this.#append(piece)
  }

  /** Reads what is left at the end of the text, or of a part that ends here for this level and the next ones. */
  end(): void {
    if (this.#unread !== '') this.#advance(true)
    if (this.#ofString) {
      this.#scanString(true)
      this.#ended.push(this.#ofString)
      this.#ofString = undefined
    }
    this.#next?.end()
  }

  /** Searches what was read. */
  scan(isEnd: boolean): void {
    this.#scan(isEnd)
    if (this.#ofString) this.#scanString(false)
    this.#next?.scan(isEnd)
  }

  /** Takes the matches that were found since the last time, at this level and the next ones. */
  take(found: LevelMatch[]): void {
    if (this.#growing.length > 0) this.#growing = this.#growing.filter(updateMatch)
    this.#searches?.take(this.level, found, this.#growing, this.#mapped)
    this.#ofString?.take(this.level, found, this.#growing, this.#mapped)
    if (this.#ended.length > 0) {
      for (const one of this.#ended) one.take(this.level, found, this.#growing, this.#mapped)
      this.#ended = []
    }
    this.#next?.take(found)
  }

  /**
   * The position of the whole text before which all matches of these rules are known at this level and the next ones;
   * `of` says for each rule whether it is meant.
   */
  decided(of: readonly boolean[]): number {
    const decided = Math.min(
      this.#at,
      this.#searches?.decided(of) ?? Infinity,
      this.#ofString?.decided(of) ?? Infinity,
    )
    return Math.min(this.#toText(decided), this.#next?.decided(of) ?? Infinity)
  }

  /** The position of the whole text from which the searches of this level and the next ones still need it. */
  get needed(): number {
    return Math.min(this.#toText(this.#neededHere), this.#next?.needed ?? Infinity)
  }

  /** The position of the whole text up to which all levels were read. */
  get settled(): number {
    return Math.min(this.#toText(this.#at), this.#next?.settled ?? Infinity)
  }

  /** Frees the text and the positions that are not needed any more, those before `passed` of the whole text. */
  forget(passed: number): void {
    this.#next?.forget(passed)
    if (this.#below) {
      const needed = this.#neededHere
      if (needed - this.#base < FORGOTTEN) return
      if (this.#searches) this.#text = this.#text.slice(needed - this.#base)
      this.#base = needed
    }
    if (!this.#next) return
    if (this.#next.#toText(this.#next.#base) <= passed) this.#escapes.forget(this.#next.#base)
  }

  get #neededHere(): number {
    return Math.min(this.#searches?.needed ?? Infinity, this.#ofString?.needed ?? Infinity, this.#at)
  }

  /** The position in the whole text for one of this level. */
  #toText(position: number): number {
    let result = position
    for (let level = this.#below; level; level = level.#below) result = level.#escapes.below(result)
    return result
  }

  #append(piece: string): void {
    if (this.#unread === '' && !this.#next && this.#isPlain(piece)) {
      this.#at += piece.length
      if (this.#below && this.#searches) this.#unscanned.push(piece)
      if (this.#ofString) this.#unscannedString.push(piece)
      return
    }
    this.#unread = this.#unread === '' ? piece : this.#unread + piece
    this.#advance(false)
  }

  /** Whether the next level would read the same in this piece. */
  #isPlain(piece: string): boolean {
    if (this.#isBeginning || this.#isFreshString) return false
    if (this.#mode === 'text') return !HAS_STOP_IN_TEXT.test(piece)
    return this.#mode === 'string' && !HAS_STOP_IN_STRING.test(piece)
  }

  #advance(isEnd: boolean): void {
    let isGoing = true
    while (isGoing && this.#from < this.#unread.length) {
      isGoing = this.#step(isEnd)
      if (this.#at >= this.#compareAt) this.#compare()
    }
    this.#unread = this.#unread.slice(this.#from)
    this.#from = 0
    this.#flush()
  }

  /** Reads on; returns false if it waits for more text. */
  #step(isEnd: boolean): boolean {
    switch (this.#mode) {
      case 'passed':
        return this.#skipTo(this.#unread.length)
      case 'structure':
        return this.#stepStructure(isEnd)
      case 'text':
      case 'string':
        return this.#stepText(isEnd)
    }
  }

  #stepText(isEnd: boolean): boolean {
    const text = this.#unread
    const isString = this.#mode === 'string'
    if (this.#isBeginning || this.#isFreshString) {
      const first = indexOf(NOT_SPACE, text, this.#from)
      if (first > this.#from) return this.#skipTo(first)
    }
    const stop = isString ? (this.#next ? STOP_IN_STRING : STOP_IN_LAST_STRING) : STOP_IN_TEXT
    if (this.#isBeginning && text[this.#from] === '"') return this.#openQuotation()
    const at = indexOf(stop, text, this.#from)
    if (at > this.#from) {
      this.#isBeginning = false
      this.#isFreshString = false
      return this.#skipTo(at)
    }
    if (text[at] === '\\') return this.#stepEscape(isEnd)
    return text[at] === '"' && isString ? this.#closeString() : this.#stepOpening(isEnd)
  }

  /** Reads a bracket with which JSON may begin. */
  #stepOpening(isEnd: boolean): boolean {
    const text = this.#unread
    const at = this.#from
    const isFirst = this.#isBeginning
    if (!isEnd && !(isFirst && text[at] === '[') && matches(BEGUN_OPENING, text, at)) return false
    if (this.#mode === 'text' && matches(isFirst ? FIRST_OPENING : OPENING, text, at)) {
      this.#flush()
      this.#next?.pass()
      this.#grammar = new JsonGrammar()
      this.#mode = 'structure'
      this.#isBeginning = false
      this.#note('structure', this.level)
      return true
    }
    if (!this.#next && (this.#isFreshString || matches(ESCAPED_OPENING, text, at))) this.#addNext()
    this.#isBeginning = false
    this.#isFreshString = false
    return this.#skip(1)
  }

  #stepEscape(isEnd: boolean): boolean {
    const escape = escapeAt(this.#unread, this.#from)
    if (escape === undefined && !isEnd && isBegunEscape(this.#unread, this.#from)) return false
    if (escape !== undefined && !this.#next) this.#addNext()
    this.#isBeginning = false
    this.#isFreshString = false
    const next = this.#next
    if (escape === undefined || this.level === this.#maxLevel || !next) return this.#skip(escape?.length ?? 1)
    if (this.#searches && !next.#searches) this.#fork(next)
    this.#escapes.add(this.#at, escape.length)
    this.#forNext += unitOf(escape)
    this.#moved(escape)
    this.#escapeEnd = this.#at
    if (next.#searches) this.#compareAt = this.#at + (this.#rules.comparedAfter ?? COMPARED_AFTER)
    return true
  }

  #stepStructure(isEnd: boolean): boolean {
    const text = this.#unread
    const space = matchAt(SPACE, text, this.#from)
    if (space !== undefined) return this.#skip(space.length)
    const unit = text[this.#from] as string
    if (unit === '"' && this.#grammar.takesString) return this.#openString()
    const bare = matchAt(BARE, text, this.#from)
    if (bare === undefined) {
      if (!this.#grammar.mark(unit)) return this.#leaveJson()
      this.#skip(1)
    } else {
      if (!isEnd && this.#from + bare.length === text.length) return false
      if (!this.#grammar.bare(bare)) return this.#leaveJson()
      this.#note('bare', this.level)
      this.#skip(bare.length)
      this.#note('structure', this.level)
    }
    return this.#grammar.isComplete ? this.#leaveJson() : true
  }

  /** Goes on as a text, after JSON or where it turned out to be none. */
  #leaveJson(): true {
    this.#flush()
    this.#mode = 'text'
    this.#isBeginning = false
    this.#note('text', this.#textDepth)
    this.#next?.begin(false, this.#textDepth)
    return true
  }

  #openString(): true {
    this.#skip(1)
    this.#flush()
    this.#mode = 'string'
    this.#isFreshString = true
    this.#note('text', this.level + 1)
    if (this.#next) this.#next.begin(true, this.level + 1)
    else if (this.#rules.ofStrings.length > 0) this.#addNext()
    return true
  }

  /**
   * Reads a quote at the beginning as that of a string of JSON. It may be any other quotation, so that the quotes are
   * a part of the text.
   */
  #openQuotation(): true {
    this.#isBeginning = false
    this.#skip(1)
    this.#flush()
    this.#mode = 'string'
    this.#isQuotation = true
    this.#isFreshString = true
    this.#note('text', this.level + 1)
    this.#next?.begin(true, this.level + 1, false)
    return true
  }

  #closeString(): boolean {
    this.#flush()
    this.#next?.pass()
    if (this.#isQuotation) {
      this.#isQuotation = false
      this.#isFreshString = false
      return this.#leaveJson()
    }
    this.#mode = 'structure'
    this.#isFreshString = false
    this.#note('structure', this.level)
    this.#grammar.string()
    this.#skip(1)
    return this.#grammar.isComplete ? this.#leaveJson() : true
  }

  /** Reads on as a text: from the beginning of a string, or in the middle of a text. */
  begin(isBeginning: boolean, depth: number, isString = isBeginning): void {
    this.#mode = 'text'
    this.#isBeginning = isBeginning
    this.#textDepth = depth
    this.#next?.begin(false, depth)
    if (!isString || this.#rules.ofStrings.length === 0) return
    this.#ofString = LevelSearches.begin(this.#at, this.#rules.ofStrings)
    this.#stringText = ''
    this.#stringBase = this.#at
  }

  /** Ends the reading as a text, because structure of the level below follows. */
  pass(): void {
    this.end()
    this.#mode = 'passed'
    this.#next?.pass()
  }

  /** Adds the next level, which has the same text up to here. */
  #addNext(): void {
    if (this.level === this.#maxLevel) return
    const isString = this.#mode === 'string'
    this.#flush()
    this.#next = new TextLevel(this.#rules, this)
    this.#next.begin(
      isString && this.#isFreshString,
      isString ? this.level + 1 : this.#textDepth,
      isString && this.#isFreshString && !this.#isQuotation,
    )
  }

  /** Begins the searches of the next level: those of this level, which find the same up to here. */
  #fork(next: TextLevel): void {
    this.#flush()
    this.#scan(false)
    const { shift } = this.#escapes
    const searches = this.#searches?.fork(shift, this.#rules.searches)
    if (!searches) return
    next.#isOther = true
    next.#searches = searches
    next.#base = Math.min(searches.needed, next.#at)
    next.#text = this.#text.slice(next.#base + shift - this.#base, next.#at + shift - this.#base)
    next.#unscanned = []
  }

  /** Ends the searches of the next level if those of this level find the same from here on. */
  #compare(): void {
    this.#compareAt = this.#at + (this.#at - this.#escapeEnd)
    const next = this.#next
    this.#flush()
    if (!next) return
    const isLast = !next.#next || !next.#next.#searches
    if (!this.#searches || !next.#searches || !isLast || next.#unread !== '') return
    this.#scan(false)
    next.#scan(false)
    const { shift } = this.#escapes
    if (!next.#searches.meet(this.#searches, shift, this.#escapeEnd - shift)) return
    next.#searches.leave()
    next.#ended.push(next.#searches)
    next.#searches = undefined
    next.#text = ''
    next.#base = next.#at
    this.#compareAt = Infinity
  }

  #scan(isEnd: boolean): void {
    if (!this.#searches) return
    if (this.#below && this.#unscanned.length > 0) {
      this.#text += this.#unscanned.length === 1 ? this.#unscanned[0] : this.#unscanned.join('')
      this.#unscanned = []
    }
    const text = this.#below ? this.#text : this.#text.slice(0, this.#at - this.#base)
    this.#searches.scan(text, this.#base, isEnd)
  }

  #scanString(isEnd: boolean): void {
    this.#stringText += this.#unscannedString.join('')
    this.#unscannedString = []
    this.#ofString?.scan(this.#stringText, this.#stringBase, isEnd)
    const drop = (this.#ofString?.needed ?? 0) - this.#stringBase
    if (isEnd || drop <= 0) return
    this.#stringText = this.#stringText.slice(drop)
    this.#stringBase += drop
  }

  /** Reads up to this offset, or to where the searches of the next level are compared. */
  #skipTo(offset: number): true {
    return this.#skip(Math.min(offset - this.#from, this.#compareAt - this.#at))
  }

  /** Reads so many units, which are the same for the next level. */
  #skip(length: number): true {
    const piece = this.#unread.slice(this.#from, this.#from + length)
    if (this.#next) this.#forNext += piece
    return this.#moved(piece)
  }

  #moved(piece: string): true {
    this.#from += piece.length
    this.#at += piece.length
    if (this.#below && this.#searches) this.#unscanned.push(piece)
    if (this.#ofString) this.#unscannedString.push(piece)
    return true
  }

  /** Gives the next level what was read. */
  #flush(): void {
    const piece = this.#forNext
    if (piece === '') return
    this.#forNext = ''
    if (this.#next) this.#next.#append(piece)
  }

  #note(kind: JsonPartKind, depth: number): void {
    this.#rules.parts?.begin(this.#toText(this.#at), kind, depth)
  }
}
