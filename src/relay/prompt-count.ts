import type { Call } from './call.ts'

/** How long a stream that has begun to come waits for the count: it is made while the upstream thinks. */
const PATIENCE_MS = 250

/** The tokens of a call's prompt, counted from the moment that the call is sent. */
export class PromptCount {
  /** The count; as many tokens as are expected by the prompt's length where it was not made in time. */
  tokens: number
  readonly #counting: Promise<void>
  #isDue = true

  constructor(call: Call) {
    this.tokens = call.expectedPrompt
    // After this turn, in which the call is sent. A count that fails leaves what is expected.
    this.#counting = Promise.resolve()
      .then(() => call.countPrompt())
      .then((tokens) => {
        if (this.#isDue) this.tokens = tokens
      })
      .catch(() => {})
      .then(() => {
        this.#isDue = false
      })
  }

  /** Nobody knows the tokens yet, and somebody may wait. */
  get isDue(): boolean {
    return this.#isDue
  }

  /** Resolves when the count is made, or is not waited for any longer. */
  async known(): Promise<void> {
    let patience: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (patience = setTimeout(resolve, PATIENCE_MS)))
    await Promise.race([this.#counting, late])
    clearTimeout(patience)
    this.#isDue = false
  }
}
