import { RedisLink } from '../redis/link.ts'
import type { Announcing } from './changes.ts'

type Listener = Parameters<Announcing['listen']>[0]

/** Short texts that every node on the same Redis server hears, over a connection of its own. */
export class RedisAnnouncements implements Announcing {
  readonly #channel: string
  readonly #link: RedisLink
  readonly #listeners = new Set<Listener>()

  /** Begins to connect at once. What has the same namespace hears each other. */
  constructor(url: string, namespace: string) {
    this.#channel = `${namespace}:changes`
    this.#link = new RedisLink(url, {
      connected: async (client) => {
        await client.subscribe(this.#channel, (text) => {
          for (const listener of this.#listeners) listener.heard(text)
        })
        for (const listener of this.#listeners) listener.connected?.()
      },
      beat: async (client) => void (await client.ping()),
      lost: () => {},
    })
  }

  /** Resolves when it is known whether the server can be reached. */
  get tried(): Promise<void> {
    return this.#link.tried
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#link.client) listener.connected?.()
    return () => void this.#listeners.delete(listener)
  }

  async announce(text: string): Promise<void> {
    const { client } = this.#link
    if (!client) throw new Error('there is no connection')
    await client.publish(this.#channel, text)
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}
