import type { CodePointRanges } from '../automaton/code-points.ts'

/** One way in which the value that a detector looks for can be written. */
export interface DetectorForm {
  /** Regular expression in the syntax of RE2; its matches have a maximum length. */
  readonly source: string
  /** Characters that must not be directly before a match. */
  readonly notAfter?: CodePointRanges
  /** Characters that must not be directly after a match. */
  readonly notBefore?: CodePointRanges
  /** Checks a text of this form further, for example its checksum; false means that it is not a match. */
  readonly check?: (text: string) => boolean
  /**
   * Position in the text at which the value begins; the text before it only identifies the value, like
   * `password=`.
   */
  readonly valueAt?: (text: string) => number
  /**
   * True if this form is something else that can contain the value, as a version number of five parts
   * contains an IPv4 address. It is not reported, nor is any match within it.
   */
  readonly isOther?: true
}

/**
 * Describes the kind of values to look for, in several forms. Of the forms that match at one position, the
 * longest is used.
 */
export interface Detector {
  readonly kind: string
  /**
   * Maximum length of a match in characters. A form without a check can match beyond it, and so can one whose match was
   * checked if `isCheckedOnce`.
   */
  readonly most: number
  /** True if the check of the shortest match at a position decides about the longer ones there, too. */
  readonly isCheckedOnce?: true
  readonly forms: readonly DetectorForm[]
}
