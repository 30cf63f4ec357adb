import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import type { NodeMessages } from '../node-messages.ts'
import { openClient } from './connect.ts'
import { mapDatabaseError } from './failure.ts'

/** PostgreSQL notification channel that all nodes listen to. The first word of a message is its kind. */
const CHANNEL = 'sluice'
const CONNECT_TIMEOUT_MS = 2_000
/** Interval at which the connection is checked, and timeout of a statement, in milliseconds. */
const LIVENESS_MS = 5_000
const MIN_RETRY_MS = 100
const MAX_RETRY_MS = 2_000

/** Functions that are called with announcements and for new connections. */
export interface Listener {
  /** Called with each text that a node announced, including this node. */
  received(text: string): void
  /** Called on every new connection. Announcements that were made without a connection were missed. */
  connected?(): void
}

/**
 * Sends short texts to every node on the same database within milliseconds, over a separate connection that
 * is restored when lost. Only texts of nodes with the same secret are accepted. A node misses the texts that
 * are sent while it is disconnected, so a listener must eventually reach the correct state without them.
 */
export class Announcements {
  readonly #url: string
  readonly #messages: NodeMessages
  readonly #listeners = new Set<Listener>()
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  readonly #firstAttempt = Promise.withResolvers<void>()
  #client: Client | undefined

  /** Connects at once, and tries again after failures until `close` is called. */
  constructor(url: string, messages: NodeMessages) {
    this.#url = url
    this.#messages = messages
    this.#running = this.#run()
  }

  /**
   * Resolves when the first attempt to connect has ended. Then `isConnected` says whether the attempt
   * succeeded.
   */
  get firstAttempt(): Promise<void> {
    return this.#firstAttempt.promise
  }

  get isConnected(): boolean {
    return this.#client !== undefined
  }

  /** Adds a listener. Returns a function that removes it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#client) listener.connected?.()
    return () => void this.#listeners.delete(listener)
  }

  /**
   * Sends a text to all nodes, including this one. Rejects with `StoreUnavailable` if the database is
   * unreachable.
   */
  async announce(text: string): Promise<void> {
    const message = this.#messages.seal(text)
    try {
      if (!this.#client) throw new Error('Connection terminated')
      await this.#client.query('select pg_notify($1, $2)', [CHANNEL, message])
    } catch (error) {
      throw mapDatabaseError(error)
    }
  }

  /** Closes the connection and does not open it again. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    let pauseMs = MIN_RETRY_MS
    while (!this.#stopping.signal.aborted) {
      if (await this.#runConnection()) pauseMs = MIN_RETRY_MS
      this.#firstAttempt.resolve()
      await delay(pauseMs, undefined, { ref: false, signal: this.#stopping.signal }).catch(() => {})
      pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)
    }
  }

  /** Opens one connection and serves it until its end. Resolves to false if it could not be opened. */
  async #runConnection(): Promise<boolean> {
    const lost = Promise.withResolvers<void>()
    let client: Client | undefined
    try {
      client = await openClient(this.#url, {
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        query_timeout: LIVENESS_MS,
        keepAlive: true,
        application_name: 'sluice announcements',
      })
      client.on('error', () => lost.resolve())
      client.on('end', () => lost.resolve())
      client.on('notification', ({ payload = '' }) => {
        const text = this.#messages.open(Buffer.from(payload))
        if (text === undefined) return
        for (const listener of this.#listeners) listener.received(text)
      })
      await client.query(`listen ${CHANNEL}`)
    } catch {
      await client?.end().catch(() => {})
      return false
    }
    this.#client = client
    this.#firstAttempt.resolve()
    for (const listener of this.#listeners) listener.connected?.()
    await this.#untilLost(client, lost.promise)
    this.#client = undefined
    // Waits only briefly for the connection to close, because a dead connection never confirms its end.
    await Promise.race([client.end().catch(() => {}), delay(MIN_RETRY_MS, undefined, { ref: false })])
    return true
  }

  // Detects a dead connection by running a query at intervals.
  async #untilLost(client: Client, lost: Promise<void>): Promise<void> {
    const { signal } = this.#stopping
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    let isLost = false
    const over = Promise.race([lost, stopped]).then(() => (isLost = true))
    while (!isLost && !signal.aborted) {
      await Promise.race([over, delay(LIVENESS_MS, undefined, { ref: false })])
      if (isLost) return
      isLost = await client.query('select 1').then(
        () => isLost,
        () => true,
      )
    }
  }
}
