import { promptTextOf } from '@sluice/wire/prompt-text'
import type { PromptText } from '@sluice/wire/prompt-tokens'
import type { AttemptRequest } from './request-stages.ts'
import type { TokenCounter } from './token-counter.ts'

/** The prompt of a request that has none. */
const NO_PROMPT: PromptText = { text: '', extraTokens: 0, chargedExtraTokens: 0 }

/** Prompt of a request as it is sent to one target. It is read only if its tokens must be counted. */
export class SentPrompt {
  readonly request: AttemptRequest | undefined
  /** Tokens of the prompt's texts, if they were counted already. */
  #tokens: number | undefined

  constructor(request: AttemptRequest | undefined) {
    this.request = request
  }

  /**
   * Tokens of the prompt to show to the client. They are counted only when no text for a charge is waiting.
   */
  async shownTokens(count: TokenCounter): Promise<number> {
    const { text, extraTokens } = this.#read()
    this.#tokens = await count.countLowPriority(text)
    return this.#tokens + extraTokens
  }

  /** Tokens of the prompt for the charge. A running count with low priority does not delay this count. */
  async chargedTokens(count: TokenCounter): Promise<number> {
    const { text, chargedExtraTokens } = this.#read()
    return (this.#tokens ?? (await count.count(text))) + chargedExtraTokens
  }

  #read(): PromptText {
    const { body, prompt, upstreamModel = '' } = this.request ?? {}
    if (typeof prompt === 'function') return { ...NO_PROMPT, text: prompt() }
    return prompt && Buffer.isBuffer(body) ? promptTextOf(body, prompt, upstreamModel) : NO_PROMPT
  }
}
