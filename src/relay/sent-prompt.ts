import { promptTextOf } from '../protocols/prompt-text.ts'
import type { PromptText } from '../protocols/prompt-tokens.ts'
import type { Prepared } from './dialects/dialect.ts'
import type { LocalCount } from './local-count.ts'

/** The prompt of a request that has none. */
const NO_PROMPT: PromptText = { text: '', extraTokens: 0, chargedExtraTokens: 0 }

/** Prompt of a request as it is sent to one target. It is read only where its tokens must be counted. */
export class SentPrompt {
  readonly prepared: Prepared | undefined
  /** Tokens of its texts, if they were counted. */
  #tokens: number | undefined

  constructor(prepared: Prepared | undefined) {
    this.prepared = prepared
  }

  /** Tokens for the client to see, counted when no text for a charge waits. */
  async shownTokens(count: LocalCount): Promise<number> {
    const { text, extraTokens } = this.#read()
    this.#tokens = await count.countLowPriority(text)
    return this.#tokens + extraTokens
  }

  /** Tokens for the charge; a count for the client that is under way does not delay them. */
  async chargedTokens(count: LocalCount): Promise<number> {
    const { text, chargedExtraTokens } = this.#read()
    return (this.#tokens ?? (await count.count(text))) + chargedExtraTokens
  }

  #read(): PromptText {
    const { body, prompt, upstreamModel = '' } = this.prepared ?? {}
    if (typeof prompt === 'function') return { ...NO_PROMPT, text: prompt() }
    return prompt && Buffer.isBuffer(body) ? promptTextOf(body, prompt, upstreamModel) : NO_PROMPT
  }
}
