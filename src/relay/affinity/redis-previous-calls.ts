import { createHmac, timingSafeEqual } from 'node:crypto'
import { withTimeout } from '../../limits/peers.ts'
import { BoundedEntries } from '../../redis/bounded-entries.ts'
import { RedisConnection } from '../../redis/redis-connection.ts'
import { LIFETIMES_MS } from './affinity.ts'
import type { PreviousCall, PreviousCalls } from './previous-calls.ts'

/** Maximum wait for Redis, from the start of a call; without an answer the call gets no reason, and nothing else. */
const TIMEOUT_MS = 100
/** Larger entries are neither written nor read. Only the names of a channel and a model may be long. */
const MAX_ENTRY_LENGTH = 4_096
const SEAL_LENGTH = 43

/** Input of `RedisPreviousCalls`. */
interface RedisPreviousCallsOptions {
  readonly url: string
  readonly namespace: string
  /** Key of the seals: 32 bytes. */
  readonly key: Buffer
  /** Called for each entry that was not sealed by a node of this gateway for that session. */
  readonly onUntrusted: () => void
  /** Unix milliseconds. */
  readonly nowMs?: () => number
}

/** Calls of all nodes on one Redis. Each call reads and writes one sealed entry there, and does not wait for the write. */
export class RedisPreviousCalls implements PreviousCalls {
  readonly isComplete = true
  readonly #options: RedisPreviousCallsOptions
  readonly #nowMs: () => number
  readonly #entries: BoundedEntries
  readonly #connection: RedisConnection
  #isLost = false
  /** When the connection came back; earlier entries may not be those of the last calls. */
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

  find(session: string): Promise<PreviousCall | undefined> | undefined {
    const reading = this.#connection.client?.get(this.#entries.keyOf(session))
    return (
      reading &&
      withTimeout(reading, TIMEOUT_MS)
        .then((entry) => (entry === null ? undefined : this.#opened(session, entry)))
        .catch(() => undefined)
    )
  }

  remember(session: string, call: PreviousCall, most: number): void {
    const { client } = this.#connection
    const text = JSON.stringify(call)
    const ms = LIFETIMES_MS[call.longest]
    if (!client || ms === undefined || SEAL_LENGTH + text.length > MAX_ENTRY_LENGTH) return
    const entry = this.#sealOf(session, text).toString('base64url') + text
    this.#entries.set(client, session, entry, this.#nowMs(), { ms, most }).catch(() => {})
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
