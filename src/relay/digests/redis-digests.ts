import { createHmac, timingSafeEqual } from 'node:crypto'
import type { RedisClientType } from '@redis/client'
import { DIGEST_KEY_BYTES } from '../../domain/digest-table.ts'
import { withTimeout } from '../../limits/peers.ts'
import { BoundedEntries } from '../../redis/bounded-entries.ts'
import { RedisConnection } from '../../redis/redis-connection.ts'
import {
  type DigestRules,
  type DigestSearch,
  type DigestStore,
  type FoundDigest,
  LocalDigests,
  matchesDigestAt,
  MAX_COMPUTED_DIGESTS,
  type ProcessDigests,
  type Retention,
  searchForOneDigest,
} from './digest-store.ts'

/** Maximum number of digests that are looked up in Redis: those of the latest turns. */
const MAX_DIGESTS = 256
/**
 * Maximum wait for Redis, in milliseconds. If Redis does not answer, a call may reserve more quota than
 * needed; there is no other effect.
 */
const TIMEOUT_MS = 100

interface RedisDigestsOptions {
  readonly url: string
  readonly namespace: string
  readonly key: Buffer
  /** Called for each entry in Redis whose HMAC shows that no node of this gateway wrote it. */
  readonly onUntrusted: () => void
  /** Returns the time of day in Unix milliseconds. */
  readonly nowMs?: () => number
}

/**
 * Digests of several nodes. Each node remembers its own in memory and shares them in Redis. Entries in Redis
 * are signed; all others are ignored.
 */
export class RedisDigests implements DigestStore {
  readonly #local: ProcessDigests
  /**
   * Connection that receives changes by other nodes; undefined if the numbers stored with digests do not
   * change. Subscribing needs its own connection.
   */
  readonly #changes: RedisConnection | undefined
  readonly #connection: RedisConnection
  readonly #entries: BoundedEntries
  readonly #rules: DigestRules
  readonly #options: RedisDigestsOptions
  readonly #nowMs: () => number
  /** Maximum number of entries, as given in the last call of `remember`. */
  #most = 0

  /** Starts to connect to Redis at once. */
  constructor(rules: DigestRules, options: RedisDigestsOptions) {
    this.#rules = rules
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#local = new LocalDigests()
    this.#entries = new BoundedEntries(options.namespace, rules.kind)
    this.#connection = new RedisConnection(options.url, {
      onConnected: async (client) => {
        await this.#entries.load(client)
      },
      heartbeat: async (client) => void (await client.ping()),
      onLost: () => {},
    })
    if (!rules.changes) return
    this.#changes = new RedisConnection(options.url, {
      onConnected: (client) =>
        // Messages are received as bytes, so that one that is too long is not converted to a string.
        client.subscribe(this.#channel, (message) => this.#onChange(message), true),
      heartbeat: async (client) => void (await client.ping()),
      onLost: () => {},
    })
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#connection.firstAttempt
  }

  find(
    search: DigestSearch,
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined | Promise<FoundDigest | undefined> {
    const own = this.#local.find(search, isPlausible)
    // Another node may know a longer part of the conversation. Redis is not asked if only newly appended
    // turns are unknown to this node.
    const newer = Math.min(own?.index ?? search.count, MAX_DIGESTS)
    const { client } = this.#connection
    if (!client || newer < (own ? MIN_NEWER : this.#rules.minSearched)) return own
    const names = Array.from({ length: newer }, (_, index) => nameOf(search.mark(index)))
    return withTimeout(this.#entries.read(client, names, MAX_ENTRY_LENGTH), TIMEOUT_MS)
      .then((entries) => this.#firstOf(search, entries, isPlausible) ?? own)
      .catch(() => own)
  }

  remember(owner: number, digest: Buffer, value: number, retention: Retention): void {
    const known = this.#changes && this.#knownHere(digest)
    this.#local.remember(owner, digest, value, retention)
    this.#most = retention.most
    const { client } = this.#connection
    if (!client) return
    const entry = sealed(this.#options.key, digest, value, Math.floor(this.#nowMs() + retention.ms))
    this.#write(client, owner, nameOf(digest.readUInt32LE()), entry, retention).catch(() => {})
    if (known !== undefined && known !== value) client.publish(this.#channel, entry).catch(() => {})
  }

  async close(): Promise<void> {
    await Promise.all([this.#connection.close(), this.#changes?.close()])
  }

  async #write(
    client: RedisClientType,
    owner: number,
    name: string,
    entry: string,
    retention: Retention,
  ): Promise<void> {
    if (this.#rules.isBounded)
      return this.#entries.set(client, { owner, name, entry }, this.#nowMs(), retention)
    const expiration = { type: 'PX', value: Math.ceil(retention.ms) } as const
    await client.set(this.#entries.keyOf(name), entry, { expiration })
  }

  /**
   * Applies another node's change of an entry that this node has in memory, because the node does not ask
   * Redis for such an entry.
   */
  #onChange(message: Buffer): void {
    const opened =
      message.length > MAX_ENTRY_LENGTH
        ? undefined
        : openedEntry(this.#options.key, message.toString('latin1'))
    if (!opened) return this.#options.onUntrusted()
    const known = this.#knownHere(opened.digest)
    if (known !== undefined && known !== opened.value) this.#learn(0, opened)
  }

  // An entry that is known already keeps its owner.
  #learn(owner: number, { digest, value, expiresMs }: SharedEntry): void {
    const ms = expiresMs - this.#nowMs()
    if (ms > 0) this.#local.remember(owner, digest, value, { ms, most: Math.max(1, this.#most) })
  }

  #knownHere(digest: Buffer): number | undefined {
    return this.#local.find(searchForOneDigest(0, digest), () => true)?.value
  }

  get #channel(): string {
    return `${this.#options.namespace}:${this.#rules.kind}:changes`
  }

  #firstOf(
    search: DigestSearch,
    entries: readonly unknown[],
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined {
    let compared = 0
    for (const [index, entry] of entries.entries()) {
      if (entry === '') continue
      const opened = openedEntry(this.#options.key, entry)
      if (!opened) this.#options.onUntrusted()
      else if (opened.expiresMs > this.#nowMs()) {
        // Another conversation may have the same mark, so the whole digest is compared.
        const { digest, value } = opened
        if (matchesDigestAt(search, index, digest) && isPlausible({ index, value })) {
          // The entry is kept in memory, so that this node notices if it later changes the number, and
          // informs the node that wrote the entry.
          if (this.#changes) this.#learn(search.owner, opened)
          return { index, value }
        }
        if (++compared === MAX_COMPUTED_DIGESTS) return undefined
      }
    }
    return undefined
  }
}

const nameOf = (mark: number): string => mark.toString(16)

/**
 * Clients usually append two turns: the answer, and what follows it. From three unknown turns on, Redis is
 * asked.
 */
const MIN_NEWER = 3

/** Format of an entry: number, expiry in Unix milliseconds, digest, and HMAC. */
const ENTRY = /^(\d{1,10})\.(\d{1,15})\.([\w-]{32})\.([\w-]{43})$/
const MAX_ENTRY_LENGTH = 112

/** An entry that a node shares with other nodes. */
interface SharedEntry {
  readonly digest: Buffer
  readonly value: number
  readonly expiresMs: number
}

/** Creates a signed entry. The digest covers user, channel, model and conversation. */
function sealed(key: Buffer, digest: Buffer, value: number, expiresMs: number): string {
  const entry = `${value}.${expiresMs}.${digest.toString('base64url', 0, DIGEST_KEY_BYTES)}`
  return `${entry}.${sealOf(key, entry).toString('base64url')}`
}

function sealOf(key: Buffer, entry: string): Buffer {
  return createHmac('sha256', key).update('entry\n').update(entry).digest()
}

/** Reads a signed entry; undefined if it was not signed with this key. */
function openedEntry(key: Buffer, entry: unknown): SharedEntry | undefined {
  if (typeof entry !== 'string' || entry.length > MAX_ENTRY_LENGTH) return undefined
  const [, value, expires, digest = '', seal = ''] = ENTRY.exec(entry) ?? []
  if (value === undefined) return undefined
  const wanted = sealOf(key, entry.slice(0, -seal.length - 1))
  if (!timingSafeEqual(Buffer.from(seal, 'base64url'), wanted)) return undefined
  return { digest: Buffer.from(digest, 'base64url'), value: Number(value), expiresMs: Number(expires) }
}
