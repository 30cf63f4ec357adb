import type { Call } from './call.ts'

/**
 * How long a started stream waits for the count, which runs while the model thinks. The time to load the
 * tokenizer is added.
 */
const TIMEOUT_MS = 250

/** The part of a call that is needed to count its prompt. */
type PromptCounting = Pick<Call, 'expectedPrompt' | 'countPrompt'> & {
  readonly count: Pick<Call['count'], 'loading'>
}

/** Counts the tokens of a call's prompt, from the moment when the call is sent. */
export class PromptCount {
  /** The count, or the expected tokens if it did not finish in time. */
  tokens: number
  readonly #timeoutMs: number
  readonly #count: PromptCounting['count']
  readonly #counting: Promise<void>
  #isPending = true

  constructor(call: PromptCounting, timeoutMs = TIMEOUT_MS) {
    this.tokens = call.expectedPrompt
    this.#timeoutMs = timeoutMs
    this.#count = call.count
    // Begins after this turn of the event loop, in which the call is sent. If the count fails, the expected
    // tokens remain.
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

  /** Whether the count is not finished and may still be awaited. */
  get isPending(): boolean {
    return this.#isPending
  }

  /** Resolves when the count is finished or has taken too long. */
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
