import { checkWrites, RedisConnection, type RedisConnectionHandlers } from '../redis/redis-connection.ts'
import type { NodeMessages } from '../store/node-messages.ts'
import type { Listener } from '../store/postgres/announcements.ts'
import type { Announcer } from './change-feed.ts'

/** Announcements to all nodes on one Redis server, over its own connection. */
export class RedisAnnouncements implements Announcer {
  readonly #channel: string
  readonly #messages: NodeMessages
  readonly #connection: RedisConnection
  readonly #listeners = new Set<Listener>()

  /**
   * Starts to connect at once. Only nodes with the same namespace and secret receive each other's texts.
   * `timeoutMs` is the timeout of the server's responses, for machines that may be slow.
   */
  constructor(url: string, namespace: string, messages: NodeMessages, timeoutMs?: number) {
    this.#messages = messages
    this.#channel = `${namespace}:changes`
    const handlers: RedisConnectionHandlers = {
      onConnected: async (client) => {
        const received = (message: Buffer): void => {
          const text = this.#messages.open(message)
          if (text === undefined) return
          for (const listener of this.#listeners) listener.received(text)
        }
        // Received as bytes, so that no string is made of a message that is too long.
        await client.subscribe(this.#channel, received, true)
      },
      // Not earlier, because a listener may announce something at once.
      onUsable: () => {
        for (const listener of this.#listeners) listener.connected?.()
      },
      heartbeat: (client) => checkWrites(client, namespace),
      onLost: () => {},
    }
    this.#connection = new RedisConnection(url, handlers, timeoutMs)
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#connection.firstAttempt
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#connection.client) listener.connected?.()
    return () => void this.#listeners.delete(listener)
  }

  async announce(text: string): Promise<void> {
    const { client } = this.#connection
    if (!client) throw new Error('there is no connection')
    await client.publish(this.#channel, this.#messages.seal(text))
  }

  close(): Promise<void> {
    return this.#connection.close()
  }
}
