import type { Call } from './call.ts'
import type { Estimate } from './request-stages.ts'
import type { TokenCounter } from './token-counter.ts'

/**
 * How long a started stream waits for the count, in milliseconds. The count runs while the model thinks. The
 * time to load the tokenizer is added.
 */
const TIMEOUT_MS = 250

/** The parts of a call that are needed to count its prompt. */
interface CountedCall extends Pick<Call, 'countPrompt'> {
  readonly plan: { readonly estimate: Pick<Estimate, 'promptTokens'> }
  readonly services: { readonly count: Pick<TokenCounter, 'loading'> }
}

/** Counts the tokens of a call's prompt, from the moment when the call is sent. */
export class PromptCount {
  /** The counted tokens of the prompt, or the expected number if the count did not finish in time. */
  tokens: number
  readonly #timeoutMs: number
  readonly #count: CountedCall['services']['count']
  readonly #counting: Promise<void>
  #isPending = true

  constructor(call: CountedCall, timeoutMs = TIMEOUT_MS) {
    this.tokens = call.plan.estimate.promptTokens
    this.#timeoutMs = timeoutMs
    this.#count = call.services.count
    // The count begins after this turn of the event loop, in which the call is sent. If it fails, `tokens`
    // keeps the expected number.
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

  /** Whether the count is still running, and has not taken too long yet. */
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
