import { hash } from 'node:crypto'
import type { RedisClientType } from '@redis/client'

/**
 * A Lua script: several commands that nobody comes between. It is sent once to each server, and by its digest
 * from then on.
 */
export class RedisScript {
  readonly #text: string
  readonly #digest: string

  constructor(text: string) {
    this.#text = text
    this.#digest = hash('sha1', text)
  }

  /** Makes it known to the server before it is needed. */
  async load(client: RedisClientType): Promise<void> {
    await client.scriptLoad(this.#text)
  }

  /** Its answer, whatever that may be. */
  async run(client: RedisClientType, keys: readonly string[], words: readonly string[]): Promise<unknown> {
    const given = { keys: [...keys], arguments: [...words] }
    try {
      return await client.evalSha(this.#digest, given)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return client.eval(this.#text, given)
    }
  }
}
