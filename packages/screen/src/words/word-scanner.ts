import type { Span, TextScanner } from '../automaton/text-scanner.ts'
import { isLetter, isMark } from './word-forms.ts'
import { MAX_SPACES, NO_WORD, ROOT, SPACE, type WordTree } from './word-tree.ts'

/** A match that may still give way to one that begins before it or is longer. */
interface Candidate {
  readonly span: Span
  /** The numbers of its first symbol and of the one after its last. */
  readonly first: number
  readonly end: number
}

/** What `after` is at the end of the text. */
const NOTHING = -1

/**
 * Finds words and phrases in one text that arrives in pieces: the leftmost, then the longest. It reads each character once
 * and remembers which words those that come may still end.
 */
export class WordScanner implements TextScanner {
  readonly spans: Span[] = []
  readonly #tree: WordTree
  #position = 0
  /** Whether a letter is before `#position`, with its marks. */
  #isLetterBefore = false
  /** The node of the longest end of the text that begins a word after all matches. */
  #node = ROOT
  /** Number of characters of white space that the last symbol consists of. */
  #spaces = 0
  /** Number of symbols that were read since the node was the root. */
  #read = 0
  // For each of the last symbols: its position, and whether a letter is before it.
  readonly #positions: Float64Array
  readonly #isAfterLetter: Uint8Array
  /** The matches so far that come after those in `spans`: the leftmost first, none overlaps another. */
  #candidates: Candidate[] = []

  constructor(tree: WordTree) {
    this.#tree = tree
    const length = 2 ** Math.ceil(Math.log2(tree.deepest + 1))
    this.#positions = new Float64Array(length)
    this.#isAfterLetter = new Uint8Array(length)
  }

  get decided(): number {
    return this.#node === ROOT ? this.#position : (this.#positions[this.#placeOf(this.#first)] as number)
  }

  get needed(): number {
    return this.decided
  }

  fork(): WordScanner {
    const fork = new WordScanner(this.#tree)
    fork.#position = this.#position
    fork.#isLetterBefore = this.#isLetterBefore
    fork.#node = this.#node
    fork.#spaces = this.#spaces
    fork.#read = this.#read
    fork.#positions.set(this.#positions)
    fork.#isAfterLetter.set(this.#isAfterLetter)
    fork.#candidates = this.#candidates.map((one) => ({ ...one, span: { ...one.span } }))
    return fork
  }

  meets(other: TextScanner, shift: number, from: number): boolean {
    return (
      other instanceof WordScanner &&
      this.decided > from &&
      this.decided + shift === other.decided &&
      this.#position + shift === other.#position &&
      this.#node === other.#node &&
      this.#isDecidedAfterLetter === other.#isDecidedAfterLetter &&
      this.#candidates.length + other.#candidates.length === 0
    )
  }

  leave(): void {}

  scan(text: string, base: number, isEnd: boolean): void {
    const tree = this.#tree
    const { begins } = tree
    let at = this.#position - base
    let known = at
    let isLetterBefore = this.#isLetterBefore
    for (;;) {
      if (this.#node === ROOT) while (at < text.length && begins[text.charCodeAt(at)] === 0) at += 1
      if (!isEnd && at > known && isCut(text, at - 1)) at -= 1
      if (at > known) isLetterBefore = isAfterLetter(text, known, at, isLetterBefore)
      known = at
      if (at >= text.length || (!isEnd && isCut(text, at))) break
      const point = text.codePointAt(at) as number
      if (tree.longest[this.#node] !== NO_WORD) this.#find(base + at, point)
      const symbol = tree.symbolOf(point)
      if (symbol === SPACE && this.#spaces > 0 && this.#spaces < MAX_SPACES) this.#spaces += 1
      else this.#step(symbol, base + at, isLetterBefore)
      at += point > 0xffff ? 2 : 1
    }
    if (isEnd) {
      this.#find(base + at, NOTHING)
      this.#node = ROOT
      this.#settle()
    }
    this.#isLetterBefore = isLetterBefore
    this.#position = base + at
  }

  /** The number of the first symbol of the node. */
  get #first(): number {
    return this.#read - (this.#tree.depths[this.#node] as number)
  }

  /** Whether a letter is before the position before which all is decided. */
  get #isDecidedAfterLetter(): boolean {
    return this.#node === ROOT ? this.#isLetterBefore : this.#isAfterLetter[this.#placeOf(this.#first)] === 1
  }

  #placeOf(symbol: number): number {
    return symbol & (this.#positions.length - 1)
  }

  #step(symbol: number, position: number, isLetterBefore: boolean): void {
    if (this.#node === ROOT) this.#read = 0
    const place = this.#placeOf(this.#read)
    this.#positions[place] = position
    this.#isAfterLetter[place] = isLetterBefore ? 1 : 0
    this.#read += 1
    this.#node = this.#tree.after(this.#node, symbol)
    this.#spaces = symbol === SPACE && this.#node !== ROOT ? 1 : 0
    if (this.#candidates.length > 0) this.#settle()
  }

  /** Notes the leftmost of the words that end at a position, unless a match that begins before it covers its start. */
  #find(end: number, after: number): void {
    const tree = this.#tree
    if (after !== NOTHING && isMarkPoint(after)) return
    const isBeforeLetter = isLetterPoint(after)
    const candidates = this.#candidates
    let index = 0
    let word = tree.longest[this.#node] as number
    for (; word !== NO_WORD; word = tree.shorterWord(word)) {
      if (isBeforeLetter && tree.needsBorderAfter(word)) continue
      const first = this.#read - tree.sizeOf(word)
      const place = this.#placeOf(first)
      if (tree.needsBorderBefore(word) && this.#isAfterLetter[place] === 1) continue
      while (index < candidates.length && (candidates[index] as Candidate).end <= first) index += 1
      if (index < candidates.length && (candidates[index] as Candidate).first < first) continue
      candidates.length = index
      const span = { start: this.#positions[place] as number, end, isOpen: false }
      candidates.push({ span, first, end: this.#read })
      return
    }
  }

  /** Takes the candidates that nothing can replace any more. Words that begin within them are no longer looked for. */
  #settle(): void {
    const { depths, shorter } = this.#tree
    let settled = 0
    for (const { span, first, end } of this.#candidates) {
      if (this.#node !== ROOT && this.#first <= first) break
      this.spans.push(span)
      settled += 1
      while (this.#node !== ROOT && this.#read - (depths[this.#node] as number) < end)
        this.#node = shorter[this.#node] as number
    }
    if (settled > 0) this.#candidates.splice(0, settled)
    if (this.#node === ROOT) this.#spaces = 0
  }
}

/** Whether the text ends with the first half of a surrogate pair, so that the second half may follow. */
function isCut(text: string, at: number): boolean {
  return at + 1 === text.length && (text.charCodeAt(at) & 0xfc00) === 0xd800
}

function sizeAt(text: string, at: number): number {
  return (text.codePointAt(at) as number) > 0xffff ? 2 : 1
}

/** The code point that ends at a position after the start of the text. */
function pointBefore(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1)
  const isSecondHalf = (unit & 0xfc00) === 0xdc00 && end > 1 && sizeAt(text, end - 2) === 2
  return isSecondHalf ? (text.codePointAt(end - 2) as number) : unit
}

/** Whether a letter and its marks end at the position `end`; `otherwise` if all characters since `from` are marks. */
function isAfterLetter(text: string, from: number, end: number, otherwise: boolean): boolean {
  for (let at = end; at > from; ) {
    const point = pointBefore(text, at)
    if (!isMarkPoint(point)) return isLetterPoint(point)
    at -= point > 0xffff ? 2 : 1
  }
  return otherwise
}

const [LETTER_BIT, MARK_BIT, KNOWN_BIT] = [1, 2, 4]
/** What is known of the code points that were looked at. */
const kinds = new Uint8Array(0x110000)

function kindOf(point: number): number {
  const known = kinds[point] as number
  if (known !== 0) return known
  const character = String.fromCodePoint(point)
  const kind = KNOWN_BIT | (isLetter(character) ? LETTER_BIT : 0) | (isMark(character) ? MARK_BIT : 0)
  kinds[point] = kind
  return kind
}

function isLetterPoint(point: number): boolean {
  return point !== -1 && (kindOf(point) & LETTER_BIT) !== 0
}

function isMarkPoint(point: number): boolean {
  return (kindOf(point) & MARK_BIT) !== 0
}
