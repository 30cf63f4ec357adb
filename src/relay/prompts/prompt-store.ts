import { RememberedPrompts } from '../../domain/remembered-prompts.ts'

/** Digests of a conversation, the longest first. */
export type PromptDigests = readonly Buffer[]

/** A remembered prompt: the position of its digest in the list, and its tokens. */
export interface FoundPrompt {
  readonly index: number
  readonly tokens: number
}

/** How long and how many prompts are remembered. */
export interface PromptRetention {
  readonly ms: number
  readonly most: number
}

/** Where the tokens of prompts are remembered by their digests. What it returns is not trusted. */
export interface PromptStore {
  /** Finds the first digest that is remembered with a number of tokens for which `isPlausible` returns true. */
  find(
    digests: PromptDigests,
    isPlausible: (found: FoundPrompt) => boolean,
  ): FoundPrompt | undefined | Promise<FoundPrompt | undefined>
  remember(digest: Buffer, tokens: number, retention: PromptRetention): void
  close(): Promise<void>
}

/** Remembers prompts in the memory of this process. */
export class LocalPrompts implements PromptStore {
  readonly #prompts: RememberedPrompts
  readonly #nowMs: () => number

  /** `nowMs`: a monotonic clock that began at 0. `lifetimeMs`: as in `RememberedPrompts`. */
  constructor(lifetimeMs?: (tokens: number) => number, nowMs: () => number = () => performance.now()) {
    this.#prompts = new RememberedPrompts(lifetimeMs)
    this.#nowMs = nowMs
  }

  find(digests: PromptDigests, isPlausible: (found: FoundPrompt) => boolean): FoundPrompt | undefined {
    const nowMs = this.#nowMs()
    for (const [index, digest] of digests.entries()) {
      const tokens = this.#prompts.get(digest, nowMs)
      if (tokens !== undefined && isPlausible({ index, tokens })) return { index, tokens }
    }
    return undefined
  }

  remember(digest: Buffer, tokens: number, { ms, most }: PromptRetention): void {
    const nowMs = this.#nowMs()
    this.#prompts.put(digest, tokens, nowMs + ms, nowMs, most)
  }

  async close(): Promise<void> {}
}
