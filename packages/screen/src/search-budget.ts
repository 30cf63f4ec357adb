/**
 * What the searches of one text may cost for each of its characters, at all levels of escapes together: a unit is about a
 * nanosecond. One level takes less on any text.
 */
const ALLOWED_COST = 1500
/** Characters that each text may cost in addition, and each piece of one. */
const CHARACTERS_OF_TEXT = 64
const CHARACTERS_OF_PIECE = 8

/** What was spent on a search at all levels of one text. Beyond the maximum, the rest of the text is not searched. */
export class SearchBudget {
  #spent = 0
  #allowed = CHARACTERS_OF_TEXT * ALLOWED_COST
  /** Whether more was spent than is allowed for what has arrived of the text. It stays so. */
  isOver = false

  /** Allows what a further piece of the text may cost. */
  allow(characters: number): void {
    this.#allowed += ALLOWED_COST * (characters + CHARACTERS_OF_PIECE)
  }

  /** Notes costs. */
  spend(cost: number): void {
    this.#spent += cost
    if (this.#spent > this.#allowed) this.isOver = true
  }

  /** Whether so much was spent that what remains should be spent on searches whose cost is bounded. */
  get isScarce(): boolean {
    return 3 * this.#spent > this.#allowed
  }
}
