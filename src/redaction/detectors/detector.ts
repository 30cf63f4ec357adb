import type { Ranges } from '../automaton/code-points.ts'

/** One form of what is looked for. */
export interface Form {
  /** RE2 syntax, with a bounded length. */
  readonly source: string
  /** Characters that must not stand directly before. */
  readonly notAfter?: Ranges
  /** Characters that must not follow directly. */
  readonly notBefore?: Ranges
  /** Whether a text of this form is what it seems to be: checksums, ranges. */
  readonly check?: (text: string) => boolean
  /** Where the match begins within the text: what stands before only tells what it is. */
  readonly valueAt?: (text: string) => number
  /** A longer text that contains the form and is something else, as a version of five parts contains an address. */
  readonly isOther?: true
}

/** What is looked for, in several forms. The longest form at a place counts. */
export interface Detector {
  readonly kind: string
  /** Maximum length of a match in characters; without checks a match may go on matching beyond it. */
  readonly most: number
  readonly forms: readonly Form[]
}
