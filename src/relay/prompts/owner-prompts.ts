import { PROMPT_KEY_BYTES } from '../../domain/remembered-prompts.ts'
import type { Link } from '../../ipc/link.ts'
import {
  type FoundPrompt,
  LocalPrompts,
  type PromptDigests,
  type PromptRetention,
  type PromptStore,
} from './prompt-store.ts'

/** Maximum digests in one request. */
const MAX_DIGESTS = 4_096

/** What the numbers are. */
export type PromptKind = 'prompts' | 'sessions'

/** Prompts of the workers of one machine, which the owner of their database remembers. */
export class OwnerPrompts implements PromptStore {
  readonly #link: Link
  readonly #kind: PromptKind

  constructor(link: Link, kind: PromptKind) {
    this.#link = link
    this.#kind = kind
  }

  async find(
    digests: PromptDigests,
    isPlausible: (found: FoundPrompt) => boolean,
  ): Promise<FoundPrompt | undefined> {
    const keys = digests.slice(0, MAX_DIGESTS).map((digest) => digest.subarray(0, PROMPT_KEY_BYTES))
    const found = await this.#link
      .request<readonly FoundPrompt[]>(`find ${this.#kind}`, Buffer.concat(keys))
      .catch(() => [])
    return found.find(isPlausible)
  }

  // The owner reads this before the settlement of the call, which is sent later over the same socket.
  remember(digest: Buffer, tokens: number, { ms, most }: PromptRetention): void {
    const key = Buffer.from(digest.subarray(0, PROMPT_KEY_BYTES))
    this.#link.send(`remember ${this.#kind}`, [key, tokens, ms, most])
  }

  async close(): Promise<void> {}
}

/** Answers the requests of a worker. */
export function answerPrompts(link: Link, kind: PromptKind, prompts: LocalPrompts): void {
  link.answer(`find ${kind}`, (keys: Uint8Array) => {
    const digests: Buffer[] = []
    for (let at = 0; at < keys.length; at += PROMPT_KEY_BYTES)
      digests.push(Buffer.from(keys.subarray(at, at + PROMPT_KEY_BYTES)))
    const found: FoundPrompt[] = []
    prompts.find(digests, (one) => found.push(one) === MAX_FOUND)
    return found
  })
  link.on(`remember ${kind}`, ([key, tokens, ms, most]: [Uint8Array, number, number, number]) =>
    prompts.remember(Buffer.from(key), tokens, { ms, most }),
  )
}

/** Number of prompts that are returned, in case the first are not plausible. */
const MAX_FOUND = 8
