import { hash } from 'node:crypto'
import { createClient, type RedisClientType } from '@redis/client'

/**
 * Default timeout in milliseconds for connecting, and for each command sent by this module. After a timeout
 * the connection is closed.
 */
const TIMEOUT_MS = 1_000
/** Interval of heartbeats, and time between attempts to connect, in milliseconds. */
const HEARTBEAT_MS = 250

/** Callbacks of a connection. */
export interface RedisConnectionHandlers {
  /** Called once for each new connection, before the other callbacks. A rejection closes the connection. */
  onConnected?(client: RedisClientType): Promise<void>
  /** Called once for each new connection, after the first heartbeat, when commands can be sent over it. */
  onUsable?(): void
  /**
   * Called every quarter of a second, to check that the server answers and takes writes. A rejection closes the
   * connection. The next one goes to the server that the address then leads to.
   */
  heartbeat(client: RedisClientType): Promise<void>
  /** Called once, before `close` ends the connection. */
  onClose?(client: RedisClientType): Promise<unknown>
  /** Called once when the connection is lost or cannot be made; `reason` is for the operator. */
  onLost(reason: string): void
}

/**
 * Connection to a Redis server. It is opened again after it was refused, lost or stopped answering. While
 * there is no connection, commands are rejected at once.
 */
export class RedisConnection {
  readonly #url: string
  readonly #handlers: RedisConnectionHandlers
  readonly #timeoutMs: number
  readonly #running: Promise<void>
  readonly #firstAttempt = Promise.withResolvers<void>()
  #client: RedisClientType | undefined
  #isLost = false
  #isStopping = false
  /** Ends the pause before the next heartbeat or attempt to connect. */
  #wake: () => void = () => {}

  /** Starts to connect at once, and retries until `close`. */
  constructor(url: string, handlers: RedisConnectionHandlers, timeoutMs = TIMEOUT_MS) {
    this.#url = url
    this.#handlers = handlers
    this.#timeoutMs = timeoutMs
    this.#running = this.#run()
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#firstAttempt.promise
  }

  /** The working connection, if there is one. */
  get client(): RedisClientType | undefined {
    return this.#client
  }

  /** Sends the next heartbeat at once, because the server may have stopped answering. */
  checkNow(): void {
    this.#wake()
  }

  /** Closes the connection and stops retrying. */
  async close(): Promise<void> {
    this.#isStopping = true
    this.#wake()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const reason = await this.#runConnection()
      if (!this.#isLost && !this.#isStopping) this.#handlers.onLost(reason)
      this.#isLost = true
      this.#firstAttempt.resolve()
      await this.#sleep()
    }
  }

  /** Runs one connection from beginning to end; resolves to the reason for its end. */
  async #runConnection(): Promise<string> {
    let failure: unknown
    const client: RedisClientType = createClient({
      url: this.#url,
      name: 'sluice',
      disableOfflineQueue: true,
      socket: { reconnectStrategy: false, connectTimeout: this.#timeoutMs },
    })
    client.on('error', (error: unknown) => (failure ??= error))
    try {
      await this.#withTimeout(client.connect())
      await this.#withTimeout(refuseCluster(client))
      await this.#withTimeout(this.#handlers.onConnected?.(client))
      await this.#withTimeout(this.#handlers.heartbeat(client))
      this.#client = client
      this.#isLost = false
      this.#handlers.onUsable?.()
      this.#firstAttempt.resolve()
      while (!this.#isStopping) {
        await this.#sleep()
        if (!this.#isStopping) await this.#withTimeout(this.#handlers.heartbeat(client))
      }
      await this.#withTimeout(this.#handlers.onClose?.(client))
    } catch (error) {
      failure ??= error
    }
    this.#client = undefined
    client.destroy()
    return failure instanceof Error ? failure.message || failure.name : String(failure)
  }

  async #sleep(): Promise<void> {
    if (this.#isStopping) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, HEARTBEAT_MS).unref()
    await promise
    clearTimeout(timer)
  }

  async #withTimeout(work: Promise<unknown> | undefined): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>()
    const late = new Error(`no answer within ${this.#timeoutMs} ms`)
    // If the event loop was blocked, the response may have arrived without being read yet, so it gets one
    // more turn.
    const timer = setTimeout(() => setImmediate(() => reject(late)), this.#timeoutMs).unref()
    try {
      await Promise.race([work, promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

/**
 * A heartbeat that writes, but changes nothing. A server that became a read-only replica refuses it, although it
 * answers PING and accepts messages, which reach its own clients alone. A server without memory does not refuse it.
 */
export async function checkWrites(client: RedisClientType, namespace: string): Promise<void> {
  await client.del(`${namespace}:nothing`)
}

/**
 * A Lua script, which Redis runs atomically. Each server gets the text once, and afterwards only its SHA-1
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

// A member of a cluster serves only some of the keys that a script needs. A server that does not let its
// users read this is taken as it is.
async function refuseCluster(client: RedisClientType): Promise<void> {
  const facts: unknown = await client.sendCommand(['INFO', 'cluster']).catch(() => undefined)
  if (typeof facts === 'string' && facts.includes('cluster_enabled:1'))
    throw new Error('it is a member of a Redis Cluster; REDIS_URL must name a server that is in none')
}
