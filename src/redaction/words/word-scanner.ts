import type { Span, TextScanner } from '../automaton/scanner.ts'
import { isLetter, isMark } from './word-forms.ts'
import { MAX_SPACES, NO_NODE, ROOT, SPACE, type WordTree } from './word-tree.ts'

/** Result of an attempt that depends on text that has not arrived yet. */
const UNKNOWN = -2
const NO_MATCH = -1

/**
 * Finds words and phrases in one text that arrives in pieces: the leftmost, then the longest. An attempt reads
 * as many characters as the longest word has at most.
 */
export class WordScanner implements TextScanner {
  readonly spans: Span[] = []
  readonly #tree: WordTree
  #start = 0
  /** The character before `#start`; -1 at the start of the text. */
  #before = -1

  constructor(tree: WordTree) {
    this.#tree = tree
  }

  get decided(): number {
    return this.#start
  }

  get needed(): number {
    return this.#start
  }

  fork(): WordScanner {
    const fork = new WordScanner(this.#tree)
    fork.#start = this.#start
    fork.#before = this.#before
    return fork
  }

  scan(text: string, base: number, isEnd: boolean): void {
    const { begins } = this.#tree
    const from = this.#start - base
    let at = from
    while (at < text.length) {
      if (begins[text.charCodeAt(at)] === 0) {
        at += 1
        continue
      }
      const end = this.#attempt(text, at, at === from ? this.#before : pointBefore(text, at), isEnd)
      if (end === UNKNOWN) break
      if (end !== NO_MATCH) this.spans.push({ start: base + at, end: base + end, isOpen: false })
      at = end === NO_MATCH ? at + sizeAt(text, at) : end
    }
    if (at > from) this.#before = pointBefore(text, at)
    this.#start = base + at
  }

  /** The end of the longest word that begins at a position. */
  #attempt(text: string, from: number, before: number, isEnd: boolean): number {
    const tree = this.#tree
    let node = ROOT
    let found = NO_MATCH
    let spaces = 0
    for (let at = from; ; ) {
      if (at >= text.length || isCut(text, at)) {
        if (!isEnd) return UNKNOWN
        if (at >= text.length) return found
      }
      const point = text.codePointAt(at) as number
      const symbol = tree.symbolOf(point)
      const next = tree.next(node, symbol)
      if (next === NO_NODE) {
        if (symbol !== SPACE || spaces === 0 || spaces === MAX_SPACES) return found
        spaces += 1
        at += 1
        continue
      }
      spaces = symbol === SPACE ? 1 : 0
      node = next
      at += point > 0xffff ? 2 : 1
      if (!tree.isEnd(node) || (tree.needsBorderBefore(node) && isLetterPoint(before))) continue
      if (at >= text.length || isCut(text, at)) {
        if (!isEnd) return UNKNOWN
        if (at >= text.length) return at
      }
      const after = text.codePointAt(at) as number
      if (!isMarkPoint(after) && !(tree.needsBorderAfter(node) && isLetterPoint(after))) found = at
    }
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
