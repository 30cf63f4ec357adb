import type { SearchBudget } from './search-budget.ts'
import type { AutomatonSearch } from './automaton/automaton-search.ts'
import { Scanner } from './automaton/scanner.ts'
import type { TextScanner } from './automaton/text-scanner.ts'
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
  /**
   * Whether each string of JSON is also searched by itself, so that `^` and `$` are its ends. Words and the forms of
   * detectors match the same beside a quote as at the end of a text, so that this would find nothing else.
   */
  readonly isOfStrings: boolean
}

/** Begins a search in one text, on which a search that may cost much spends no more than `budget`. */
export function scannerOf(search: TextSearch, budget: SearchBudget): TextScanner {
  return 'words' in search ? new WordScanner(search.words) : new Scanner(search, budget)
}

/** Whether a search is for the forms of a detector, which is made of several searches. */
export function isOfDetector(search: TextSearch): boolean {
  return !('words' in search || search.guided)
}
