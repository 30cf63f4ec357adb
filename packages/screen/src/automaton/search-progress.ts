/** Where a search is in a text, and what it reports there. Positions are those of the whole text. */
export interface SearchProgress {
  /** Start of the current or the next attempt to match, and the class of the character before it. */
  start: number
  classBefore: number
  /** End of the match of the current attempt so far, -1 without one, and the class of the character before it. */
  matchEnd: number
  classAtMatch: number
  /** If there is a match: the nodes at its end from which it may become longer, in order of preference. */
  open: Int32Array
  /** Called when the match of the current attempt is found or becomes longer. */
  matched(): void
  /** Called when the current attempt has ended with a match. */
  ended(): void
  /** Notes that so many values were computed. Returns whether the search has to end. */
  spend(nodes: number): boolean
}
