import { caseVariants } from '../automaton/code-points.ts'
import { type WordForm, wordForms } from './word-forms.ts'

/** Maximum number of characters of white space between two parts of a phrase. */
export const MAX_SPACES = 4
/** The first node, and the node that there is not. */
export const ROOT = 0
export const NO_NODE = -1
/** The symbol of white space, and that of characters that are in no word. */
export const SPACE = 1
const UNUSED = 0
const WHITE_SPACE = [0x09, 0x0a, 0x0c, 0x0d, 0x20]
const IS_END = 1
const BORDER_BEFORE = 2
const BORDER_AFTER = 4

/**
 * Words and phrases as a tree of their characters, in which words with the same beginning share their nodes.
 * Characters that equal each other if case is ignored have one symbol.
 */
export class WordTree {
  /** Maximum length of a match. */
  readonly most: number
  /** For each UTF-16 code unit: 1 if a word can begin with it. */
  readonly begins = new Uint8Array(0x10000)
  readonly #symbols = new Uint16Array(0x10000)
  /** Symbols of characters that have two code units. */
  readonly #others = new Map<number, number>()
  #symbolCount = 2
  readonly #flags: number[] = [0]
  // A hash table of the edges: node, symbol and the node after it.
  #edges = new Int32Array(3 * 1024).fill(NO_NODE)
  #mask = 1023

  constructor(words: readonly string[]) {
    for (const unit of WHITE_SPACE) this.#symbols[unit] = SPACE
    let most = 0
    for (const form of words.flatMap(wordForms)) {
      this.#add(form)
      const length = form.parts.reduce((sum, part) => sum + part.length, 0)
      most = Math.max(most, length + MAX_SPACES * (form.parts.length - 1))
    }
    this.most = most
  }

  symbolOf(point: number): number {
    return point > 0xffff ? (this.#others.get(point) ?? UNUSED) : (this.#symbols[point] as number)
  }

  /** The node after a symbol, or `NO_NODE`. */
  next(node: number, symbol: number): number {
    return symbol === UNUSED ? NO_NODE : (this.#edges[this.#slotOf(node, symbol) + 2] as number)
  }

  /** Whether a word ends at a node. */
  isEnd(node: number): boolean {
    return ((this.#flags[node] as number) & IS_END) !== 0
  }

  /** Whether no letter may be directly before the word that ends at a node. */
  needsBorderBefore(node: number): boolean {
    return ((this.#flags[node] as number) & BORDER_BEFORE) !== 0
  }

  /** Whether no letter may be directly after the word that ends at a node. */
  needsBorderAfter(node: number): boolean {
    return ((this.#flags[node] as number) & BORDER_AFTER) !== 0
  }

  #add({ parts, borderBefore, borderAfter }: WordForm): void {
    for (const point of variantsOf(parts[0] as string))
      this.begins[String.fromCodePoint(point).charCodeAt(0)] = 1
    let node = ROOT
    for (const [index, part] of parts.entries()) {
      if (index > 0) node = this.#childOf(node, SPACE)
      for (const character of part) node = this.#childOf(node, this.#symbolFor(character))
    }
    this.#flags[node] = IS_END | (borderBefore ? BORDER_BEFORE : 0) | (borderAfter ? BORDER_AFTER : 0)
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
    const known = this.next(node, symbol)
    if (known !== NO_NODE) return known
    if (2 * this.#flags.length > this.#mask) this.#grow()
    const child = this.#flags.push(0) - 1
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
