import { RedisConnection } from '../redis/redis-connection.ts'
import type { Listener } from '../store/postgres/announcements.ts'
import type { Announcer } from './change-feed.ts'

/** Short texts that every node on the same Redis server hears, over a connection of its own. */
export class RedisAnnouncements implements Announcer {
  readonly #channel: string
  readonly #link: RedisConnection
  readonly #listeners = new Set<Listener>()

  /** Begins to connect at once. What has the same namespace hears each other. */
  constructor(url: string, namespace: string) {
    this.#channel = `${namespace}:changes`
    this.#link = new RedisConnection(url, {
      onConnected: async (client) => {
        await client.subscribe(this.#channel, (text) => {
          for (const listener of this.#listeners) listener.received(text)
        })
        for (const listener of this.#listeners) listener.connected?.()
      },
      heartbeat: async (client) => void (await client.ping()),
      onLost: () => {},
    })
  }

  /** Resolves when it is known whether the server can be reached. */
  get firstAttempt(): Promise<void> {
    return this.#link.firstAttempt
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
