import type { Call } from './call.ts'

/** How long a stream that has begun to come waits for the count: it is made while the upstream thinks. */
const PATIENCE_MS = 250

/** Parts that a prompt is counted with. */
type Counting = Pick<Call, 'expectedPrompt' | 'countPrompt'>

/** The tokens of a call's prompt, counted from the moment that the call is sent. */
export class PromptCount {
  /** The count; as many tokens as are expected by the prompt's length where it was not made in time. */
  tokens: number
  readonly #patienceMs: number
  readonly #counting: Promise<void>
  #isDue = true

  constructor(call: Counting, patienceMs = PATIENCE_MS) {
    this.tokens = call.expectedPrompt
    this.#patienceMs = patienceMs
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

  /** The count is not made yet, and may be waited for. */
  get isDue(): boolean {
    return this.#isDue
  }

  /** Resolves when the count is made, or is not waited for any longer. */
  async known(): Promise<void> {
    let patience: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (patience = setTimeout(resolve, this.#patienceMs)))
    await Promise.race([this.#counting, late])
    clearTimeout(patience)
    this.#isDue = false
  }
}
