import type { Call } from './call.ts'

/** How long a stream that has begun to come waits for the count: it is made while the upstream thinks. */
const TIMEOUT_MS = 250

/** Parts that a prompt is counted with. */
type PromptCounting = Pick<Call, 'expectedPrompt' | 'countPrompt'>

/** The tokens of a call's prompt, counted from the moment that the call is sent. */
export class PromptCount {
  /** The count; as many tokens as are expected by the prompt's length where it was not made in time. */
  tokens: number
  readonly #timeoutMs: number
  readonly #counting: Promise<void>
  #isPending = true

  constructor(call: PromptCounting, patienceMs = TIMEOUT_MS) {
    this.tokens = call.expectedPrompt
    this.#timeoutMs = patienceMs
    // After this turn, in which the call is sent. A count that fails leaves what is expected.
    this.#counting = Promise.resolve()
      .then(() => call.countPrompt())
      .then((tokens) => {
        if (this.#isPending) this.tokens = tokens
      })
      .catch(() => {})
      .then(() => {
        this.#isPending = false
      })
  }

  /** The count is not made yet, and may be waited for. */
  get isPending(): boolean {
    return this.#isPending
  }

  /** Resolves when the count is made, or is not waited for any longer. */
  async ready(): Promise<void> {
    let patience: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (patience = setTimeout(resolve, this.#timeoutMs)))
    await Promise.race([this.#counting, late])
    clearTimeout(patience)
    this.#isPending = false
  }
}
