import { hash } from 'node:crypto'
import type { RedisClientType } from '@redis/client'

/**
 * A Lua script, which Redis runs atomically. Its text is sent to each server once, after that only its
 * digest.
 */
export class RedisScript {
  readonly #text: string
  readonly #digest: string

  constructor(text: string) {
    this.#text = text
    this.#digest = hash('sha1', text)
  }

  /** Loads the script into the server before its first use. */
  async load(client: RedisClientType): Promise<void> {
    await client.scriptLoad(this.#text)
  }

  /** Runs the script; resolves to its unchecked result. */
  async run(client: RedisClientType, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const options = { keys: [...keys], arguments: [...args] }
    try {
      return await client.evalSha(this.#digest, options)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return client.eval(this.#text, options)
    }
  }
}
