import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { mapDatabaseError } from './failure.ts'

/** The one channel of all nodes. What is said on it begins with a word that tells whose it is. */
const CHANNEL = 'sluice'
/** PostgreSQL takes less than 8,000 bytes. */
const MAX_BYTES = 7_999
const CONNECT_TIMEOUT_MS = 2_000
/** How often the connection is tried while nobody says anything, and how long an answer may take. */
const LIVENESS_MS = 5_000
const MIN_RETRY_MS = 100
const MAX_RETRY_MS = 2_000

/** What a listener is told. */
export interface Listener {
  /** Somebody announced this text: another node, or this one. */
  received(text: string): void
  /** The connection is there, or there again: what was announced while it was not has been missed. */
  connected?(): void
}

/**
 * Short texts that every node on the same database hears within milliseconds, over a connection of its own
 * that is made again whenever it is lost. They are hints: what is announced while a node is away is not told
 * to it later, so that whoever listens must be right, if late, without them.
 */
export class Announcements {
  readonly #url: string
  readonly #listeners = new Set<Listener>()
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  readonly #firstAttempt = Promise.withResolvers<void>()
  #client: Client | undefined

  /** Begins to connect at once, and goes on trying until `close`. */
  constructor(url: string) {
    this.#url = url
    this.#running = this.#run()
  }

  /** Resolves when the first attempt to connect has ended, in whatever way; `isConnected` tells which. */
  get firstAttempt(): Promise<void> {
    return this.#firstAttempt.promise
  }

  get isConnected(): boolean {
    return this.#client !== undefined
  }

  /** Tells this listener from now on; call what is returned to end that. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#client) listener.connected?.()
    return () => void this.#listeners.delete(listener)
  }

  /**
   * Tells all nodes, this one included; rejects with `StoreUnavailable` where the database is out of reach.
   */
  async announce(text: string): Promise<void> {
    if (Buffer.byteLength(text) > MAX_BYTES)
      throw new RangeError(`an announcement may have ${MAX_BYTES} bytes at most`)
    try {
      if (!this.#client) throw new Error('Connection terminated')
      await this.#client.query('select pg_notify($1, $2)', [CHANNEL, text])
    } catch (error) {
      throw mapDatabaseError(error)
    }
  }

  /** Listens no more. */
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

  /** One connection, from its beginning to its end; resolves to whether it was made. */
  async #runConnection(): Promise<boolean> {
    const client = new Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: LIVENESS_MS,
      keepAlive: true,
      application_name: 'sluice announcements',
    })
    const lost = Promise.withResolvers<void>()
    client.on('error', () => lost.resolve())
    client.on('end', () => lost.resolve())
    client.on('notification', ({ payload = '' }) => {
      for (const listener of this.#listeners) listener.received(payload)
    })
    try {
      await client.connect()
      await client.query(`listen ${CHANNEL}`)
    } catch {
      await client.end().catch(() => {})
      return false
    }
    this.#client = client
    this.#firstAttempt.resolve()
    for (const listener of this.#listeners) listener.connected?.()
    await this.#untilLost(client, lost.promise)
    this.#client = undefined
    // A connection that does not answer does not say farewell either.
    await Promise.race([client.end().catch(() => {}), delay(MIN_RETRY_MS, undefined, { ref: false })])
    return true
  }

  // A server that went away without a word is noticed by asking it.
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
