import { caseVariants } from '../automaton/code-points.ts'
import { type WordForm, wordForms } from './word-forms.ts'

/** Maximum number of characters of white space between two parts of a phrase. */
export const MAX_SPACES = 4
/** The first node, and the node that there is not. */
export const ROOT = 0
const NO_NODE = -1
/** The symbol of white space, and that of characters that are in no word. */
export const SPACE = 1
const UNUSED = 0
/** The code units of `\s`. */
const WHITE_SPACE = [
  0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
  0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff,
]
/** The word that there is not. */
export const NO_WORD = -1
const BORDER_BEFORE = 1
const BORDER_AFTER = 2
const FLAG_BITS = 2

/**
 * Words and phrases as a tree of their characters, in which words with the same beginning share their nodes.
 * Characters that equal each other if case is ignored have one symbol, and so has the white space between two parts.
 * Each node refers to the longest end of what was read that also begins a word (Aho and Corasick, 1975), so that a text is
 * read once, whatever the words are: `docs/matching.md: Time`.
 */
export class WordTree {
  /** Maximum length of a match. */
  readonly most: number
  /** Maximum number of symbols of a word. */
  readonly deepest: number
  /** For each UTF-16 code unit: 1 if a word can begin with it. */
  readonly begins = new Uint8Array(0x10000)
  /** For each node: the number of symbols up to it. */
  readonly depths: Uint16Array
  /** For each node: the node of the longest end of its symbols that begins a word. */
  readonly shorter: Int32Array
  /** For each node: the longest word that ends with its symbols, or `NO_WORD`. */
  readonly longest: Int32Array
  readonly #symbols = new Uint32Array(0x10000)
  /** Symbols of characters that have two code units. */
  readonly #others = new Map<number, number>()
  #symbolCount = 2
  #nodeCount = 1
  /** For each word: the next shorter word that ends with its symbols, then its number of symbols and its flags. */
  readonly #words: Int32Array
  // A hash table of the edges: node, symbol and the node after it.
  #edges = new Int32Array(3 * 1024).fill(NO_NODE)
  #mask = 1023

  constructor(words: readonly string[]) {
    for (const unit of WHITE_SPACE) this.#symbols[unit] = SPACE
    let most = 0
    const flags = new Map<number, number>()
    for (const form of words.flatMap(wordForms)) {
      const { parts, borderBefore, borderAfter } = form
      flags.set(this.#add(form), (borderBefore ? BORDER_BEFORE : 0) | (borderAfter ? BORDER_AFTER : 0))
      const length = parts.reduce((sum, part) => sum + part.length, 0)
      most = Math.max(most, length + MAX_SPACES * (parts.length - 1))
    }
    this.most = most
    this.depths = new Uint16Array(this.#nodeCount)
    this.shorter = new Int32Array(this.#nodeCount)
    this.longest = new Int32Array(this.#nodeCount).fill(NO_WORD)
    this.#words = new Int32Array(2 * flags.size)
    this.deepest = this.#link(flags)
  }

  symbolOf(point: number): number {
    return point > 0xffff ? (this.#others.get(point) ?? UNUSED) : (this.#symbols[point] as number)
  }

  /** The node of the longest end of the symbols of a node and one more symbol. */
  after(node: number, symbol: number): number {
    if (symbol === UNUSED) return ROOT
    for (let from = node; ; from = this.shorter[from] as number) {
      const next = this.#next(from, symbol)
      if (next !== NO_NODE) return next
      if (from === ROOT) return ROOT
    }
  }

  /** The next shorter word that ends with the symbols of a word, or `NO_WORD`. */
  shorterWord(word: number): number {
    return this.#words[2 * word] as number
  }

  /** The number of symbols of a word. */
  sizeOf(word: number): number {
    return (this.#words[2 * word + 1] as number) >> FLAG_BITS
  }

  /** Whether no letter may be directly before a word. */
  needsBorderBefore(word: number): boolean {
    return ((this.#words[2 * word + 1] as number) & BORDER_BEFORE) !== 0
  }

  /** Whether no letter may be directly after a word. */
  needsBorderAfter(word: number): boolean {
    return ((this.#words[2 * word + 1] as number) & BORDER_AFTER) !== 0
  }

  /** Adds a word; returns its last node. */
  #add({ parts }: WordForm): number {
    for (const point of variantsOf(parts[0] as string))
      this.begins[String.fromCodePoint(point).charCodeAt(0)] = 1
    let node = ROOT
    for (const [index, part] of parts.entries()) {
      if (index > 0) node = this.#childOf(node, SPACE)
      for (const character of part) node = this.#childOf(node, this.#symbolFor(character))
    }
    return node
  }

  /** Links the nodes and the words, those with fewer symbols first; `flags` has those of the words by their last nodes. */
  #link(flags: ReadonlyMap<number, number>): number {
    const { depths, shorter, longest } = this
    const count = this.#nodeCount
    const [parents, symbols] = [new Int32Array(count), new Int32Array(count)]
    for (let slot = 0; slot < this.#edges.length; slot += 3) {
      const parent = this.#edges[slot] as number
      if (parent === NO_NODE) continue
      const node = this.#edges[slot + 2] as number
      parents[node] = parent
      symbols[node] = this.#edges[slot + 1] as number
    }
    // A node is added after its parent.
    for (let node = 1; node < count; node++) depths[node] = (depths[parents[node] as number] as number) + 1
    const order = ascending(depths)
    let word = 0
    for (const node of order.subarray(1)) {
      const parent = parents[node] as number
      if (parent !== ROOT) shorter[node] = this.after(shorter[parent] as number, symbols[node] as number)
      const ending = longest[shorter[node] as number] as number
      const own = flags.get(node)
      longest[node] = own === undefined ? ending : word
      if (own === undefined) continue
      this.#words[2 * word] = ending
      this.#words[2 * word + 1] = ((depths[node] as number) << FLAG_BITS) | own
      word += 1
    }
    return depths[order.at(-1) as number] as number
  }

  /** The node of a symbol that follows directly, or `NO_NODE`. */
  #next(node: number, symbol: number): number {
    return this.#edges[this.#slotOf(node, symbol) + 2] as number
  }

  #symbolFor(character: string): number {
    const known = this.symbolOf(character.codePointAt(0) as number)
    if (known !== UNUSED) return known
    const symbol = this.#symbolCount++
    for (const point of variantsOf(character)) {
      if (point > 0xffff) this.#others.set(point, symbol)
      else this.#symbols[point] = symbol
    }
    return symbol
  }

  #childOf(node: number, symbol: number): number {
    const known = this.#next(node, symbol)
    if (known !== NO_NODE) return known
    if (2 * this.#nodeCount > this.#mask) this.#grow()
    const child = this.#nodeCount++
    this.#edges.set([node, symbol, child], this.#slotOf(node, symbol))
    return child
  }

  /** The place of an edge in the table, or the free place for it. */
  #slotOf(node: number, symbol: number): number {
    const edges = this.#edges
    let at = (Math.imul(node, 0x9e3779b1) ^ Math.imul(symbol, 0x85ebca6b)) >>> 0
    for (at ^= at >>> 15; ; at++) {
      const slot = 3 * (at & this.#mask)
      const there = edges[slot] as number
      if (there === NO_NODE || (there === node && edges[slot + 1] === symbol)) return slot
    }
  }

  #grow(): void {
    const before = this.#edges
    this.#mask = 2 * this.#mask + 1
    this.#edges = new Int32Array(2 * before.length).fill(NO_NODE)
    for (let slot = 0; slot < before.length; slot += 3) {
      const [node, symbol] = [before[slot] as number, before[slot + 1] as number]
      if (node !== NO_NODE) this.#edges.set(before.subarray(slot, slot + 3), this.#slotOf(node, symbol))
    }
  }
}

/** The code points that equal the first character if case is ignored. */
function variantsOf(text: string): readonly number[] {
  const point = text.codePointAt(0) as number
  return [point, ...caseVariants(point)]
}

/** The indexes of numbers, those of smaller numbers first. */
function ascending(numbers: Uint16Array): Int32Array {
  const ends: number[] = []
  for (const number of numbers) ends[number] = (ends[number] ?? 0) + 1
  for (let number = 1; number < ends.length; number++)
    ends[number] = (ends[number] as number) + (ends[number - 1] as number)
  const order = new Int32Array(numbers.length)
  for (let index = numbers.length - 1; index >= 0; index--) {
    const number = numbers[index] as number
    const place = (ends[number] as number) - 1
    ends[number] = place
    order[place] = index
  }
  return order
}
