import { type AutomatonSearch, Scanner, type TextScanner } from './automaton/scanner.ts'
import { WordScanner } from './words/word-scanner.ts'
import type { WordTree } from './words/word-tree.ts'

/** A search for words and phrases. */
interface WordSearch {
  /** Maximum length of a match. */
  readonly most: number
  readonly words: WordTree
}

/** What a rule searches for. The scanners of all texts can share it. */
export type TextSearch = (AutomatonSearch | WordSearch) & {
  /** The kind of its matches. */
  readonly kind: string
}

/** Begins a search in one text. */
export function scannerOf(search: TextSearch): TextScanner {
  return 'words' in search ? new WordScanner(search.words) : new Scanner(search)
}
