import { createHmac, timingSafeEqual } from 'node:crypto'
import { withTimeout } from '../../limits/peers.ts'
import { BoundedEntries } from '../../redis/bounded-entries.ts'
import { RedisConnection } from '../../redis/redis-connection.ts'
import { CACHE_LIFETIMES_MS } from './affinity.ts'
import type { PreviousCall, PreviousCalls } from './previous-calls.ts'

/**
 * Maximum wait for Redis in milliseconds. If Redis does not answer, only the reason of a cache miss remains
 * unknown.
 */
const TIMEOUT_MS = 100
/**
 * Entries with more characters than this are neither written nor read. Only the names of a channel and a
 * model may be long.
 */
const MAX_ENTRY_LENGTH = 4_096
const SEAL_LENGTH = 43

/** What is needed to remember the previous calls of sessions in Redis. */
interface RedisPreviousCallsOptions {
  readonly url: string
  readonly namespace: string
  /** Secret key of the HMAC that protects each entry: 32 bytes. */
  readonly key: Buffer
  /** Called for each entry whose HMAC shows that no node of this gateway wrote it for that session. */
  readonly onUntrusted: () => void
  /** The clock, in Unix milliseconds. */
  readonly nowMs?: () => number
}

/**
 * Previous calls of all nodes that share a Redis server. Each call reads and writes one entry, which an HMAC
 * protects, and does not wait for the write.
 */
export class RedisPreviousCalls implements PreviousCalls {
  readonly isComplete = true
  readonly #options: RedisPreviousCallsOptions
  readonly #nowMs: () => number
  readonly #entries: BoundedEntries
  readonly #connection: RedisConnection
  #isLost = false
  /**
   * When the lost connection came back, in Unix milliseconds. Older entries are ignored, because later calls
   * may not have been recorded.
   */
  #knownSinceMs = 0

  /** Starts to connect at once. */
  constructor(options: RedisPreviousCallsOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#entries = new BoundedEntries(options.namespace, 'previous')
    this.#connection = new RedisConnection(options.url, {
      onConnected: async (client) => {
        if (this.#isLost) this.#knownSinceMs = this.#nowMs()
        await this.#entries.load(client)
      },
      heartbeat: async (client) => void (await client.ping()),
      onLost: () => (this.#isLost = true),
    })
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#connection.firstAttempt
  }

  find(_userId: number, session: string): Promise<PreviousCall | undefined> | undefined {
    const { client } = this.#connection
    if (!client) return undefined
    return withTimeout(this.#entries.read(client, [session], MAX_ENTRY_LENGTH), TIMEOUT_MS)
      .then(([entry]) => (entry === '' ? undefined : this.#opened(session, entry)))
      .catch(() => undefined)
  }

  remember(owner: number, session: string, call: PreviousCall, most: number): void {
    const { client } = this.#connection
    const text = JSON.stringify(call)
    const ms = CACHE_LIFETIMES_MS[call.longest]
    if (!client || ms === undefined || SEAL_LENGTH + text.length > MAX_ENTRY_LENGTH) return
    const entry = this.#sealOf(session, text).toString('base64url') + text
    this.#entries.set(client, { owner, name: session, entry }, this.#nowMs(), { ms, most }).catch(() => {})
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  #opened(session: string, entry: unknown): PreviousCall | undefined {
    const isEntry =
      typeof entry === 'string' && entry.length > SEAL_LENGTH && entry.length <= MAX_ENTRY_LENGTH
    const seal = isEntry ? Buffer.from(entry.slice(0, SEAL_LENGTH), 'base64url') : undefined
    const wanted = isEntry ? this.#sealOf(session, entry.slice(SEAL_LENGTH)) : undefined
    if (!seal || !wanted || seal.length !== wanted.length || !timingSafeEqual(seal, wanted)) {
      this.#options.onUntrusted()
      return undefined
    }
    const call = JSON.parse((entry as string).slice(SEAL_LENGTH)) as PreviousCall
    return call.atMs < this.#knownSinceMs ? undefined : call
  }

  #sealOf(session: string, text: string): Buffer {
    return createHmac('sha256', this.#options.key).update(`previous ${session}\n`).update(text).digest()
  }
}
