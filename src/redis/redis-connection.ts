import { createClient, type RedisClientType } from '@redis/client'

/** How long a connection, or the answer to a beat, may take before the connection is given up. */
const PATIENCE_MS = 1_000
/** Between two beats, and between two attempts to connect. */
const BEAT_MS = 250

/** What is done over a link. */
export interface RedisConnectionHandlers {
  /** Once for each connection, before anything else. Rejecting gives the connection up. */
  onConnected?(client: RedisClientType): Promise<void>
  /** Every quarter of a second: shows that the server answers. Rejecting gives the connection up. */
  heartbeat(client: RedisClientType): Promise<void>
  /** Once, before the connection is ended from here. */
  onClose?(client: RedisClientType): Promise<unknown>
  /** The connection is gone; `reason` is a word for the operator. It is told once, not at every attempt. */
  onLost(reason: string): void
}

/**
 * A connection to a Redis server that is made again whenever it is lost, in whatever way: refused, cut, or
 * silent. Commands on a connection that is not there are refused at once, never queued.
 */
export class RedisConnection {
  readonly #url: string
  readonly #use: RedisConnectionHandlers
  readonly #running: Promise<void>
  readonly #tried = Promise.withResolvers<void>()
  #client: RedisClientType | undefined
  #isLost = false
  #isStopping = false
  /** Ends a pause. */
  #wake: () => void = () => {}

  /** Begins to connect at once, and goes on trying until `close`. */
  constructor(url: string, use: RedisConnectionHandlers) {
    this.#url = url
    this.#use = use
    this.#running = this.#run()
  }

  /** Resolves when the first attempt to connect has ended, in whatever way. */
  get firstAttempt(): Promise<void> {
    return this.#tried.promise
  }

  /** The connection that works, if there is one. */
  get client(): RedisClientType | undefined {
    return this.#client
  }

  /** Has the next beat come at once: somebody doubts that the server answers. */
  checkNow(): void {
    this.#wake()
  }

  /** Ends the connection, and tries no more. */
  async close(): Promise<void> {
    this.#isStopping = true
    this.#wake()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const reason = await this.#hold()
      if (!this.#isLost && !this.#isStopping) this.#use.onLost(reason)
      this.#isLost = true
      this.#tried.resolve()
      await this.#pause()
    }
  }

  /** One connection, from its beginning to its end; resolves to why it ended. */
  async #hold(): Promise<string> {
    let failure: unknown
    const client: RedisClientType = createClient({
      url: this.#url,
      name: 'sluice',
      disableOfflineQueue: true,
      socket: { reconnectStrategy: false, connectTimeout: PATIENCE_MS },
    })
    client.on('error', (error: unknown) => (failure ??= error))
    try {
      await inTime(client.connect())
      await inTime(this.#use.onConnected?.(client))
      await inTime(this.#use.heartbeat(client))
      this.#client = client
      this.#isLost = false
      this.#tried.resolve()
      while (!this.#isStopping) {
        await this.#pause()
        if (!this.#isStopping) await inTime(this.#use.heartbeat(client))
      }
      await inTime(this.#use.onClose?.(client))
    } catch (error) {
      failure ??= error
    }
    this.#client = undefined
    client.destroy()
    return failure instanceof Error ? failure.message || failure.name : String(failure)
  }

  async #pause(): Promise<void> {
    if (this.#isStopping) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, BEAT_MS).unref()
    await promise
    clearTimeout(timer)
  }
}

async function inTime(work: Promise<unknown> | undefined): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS).unref()
  try {
    await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
