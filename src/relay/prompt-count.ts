import type { Call } from './call.ts'

/**
 * How long a stream that has begun waits for the count, which is made while the upstream thinks. The time in
 * which the tokenizer is loaded comes on top.
 */
const TIMEOUT_MS = 250

/** The parts of a call that a prompt is counted with. */
type PromptCounting = Pick<Call, 'expectedPrompt' | 'countPrompt'> & {
  readonly count: Pick<Call['count'], 'loading'>
}

/** Count of the tokens of a call's prompt, made from the moment that the call is sent. */
export class PromptCount {
  /** The count; the expected tokens where it was not made in time. */
  tokens: number
  readonly #timeoutMs: number
  readonly #count: PromptCounting['count']
  readonly #counting: Promise<void>
  #isPending = true

  constructor(call: PromptCounting, timeoutMs = TIMEOUT_MS) {
    this.tokens = call.expectedPrompt
    this.#timeoutMs = timeoutMs
    this.#count = call.count
    // Begins after this turn, in which the call is sent. After a failed count the expected tokens remain.
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

  /** Whether the count is not made yet, and may be waited for. */
  get isPending(): boolean {
    return this.#isPending
  }

  /** Resolves when the count is made, or when it took too long. */
  async ready(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = this.#count.loading.then(
      () => new Promise<void>((resolve) => (timer = setTimeout(resolve, this.#timeoutMs))),
    )
    await Promise.race([this.#counting, late])
    clearTimeout(timer)
    this.#isPending = false
  }
}
