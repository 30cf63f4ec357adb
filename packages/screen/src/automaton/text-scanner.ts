/**
 * A match. Positions are UTF-16 code units of the whole text. While `isOpen` is true, `end` may still
 * increase.
 */
export interface Span {
  readonly start: number
  end: number
  isOpen: boolean
}

/** Finds matches in one text that arrives in pieces. */
export interface TextScanner {
  /** Matches that were found and that the caller has not removed yet, in ascending order. */
  readonly spans: Span[]
  /** For all text before this position, it is known which parts are matches. */
  readonly decided: number
  /** The scanner still needs the text from this position on. */
  readonly needed: number
  /**
   * Continues the search for matches to the end of `text`.
   * @param base Position of its first character in the whole text, at most `needed`.
   * @param isEnd Whether this is the end of the whole text.
   */
  scan(text: string, base: number, isEnd: boolean): void
  /** Another scanner in the same state, which can go on with another text. Its open match is a copy. */
  fork(): TextScanner
  /**
   * Whether the scanner is in the state of another one of the same search, so that both find the same from now on.
   * @param shift The other text is the same, with positions that are larger by this number,
   * @param from from this position on.
   */
  meets(other: TextScanner, shift: number, from: number): boolean
  /** Leaves the rest of the text, and of a match that may still grow, to another scanner. */
  leave(): void
}
