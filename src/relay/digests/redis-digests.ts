import { createHmac, timingSafeEqual } from 'node:crypto'
import { DIGEST_KEY_BYTES } from '../../domain/digest-table.ts'
import { withTimeout } from '../../limits/peers.ts'
import { RedisConnection } from '../../redis/redis-connection.ts'
import {
  type DigestRules,
  type DigestStore,
  type FoundDigest,
  LocalDigests,
  type Retention,
} from './digest-store.ts'

/** Maximum digests that are looked up in Redis: those of the latest turns. */
const MAX_DIGESTS = 256
/** Maximum wait for Redis; without it a call holds more, and nothing else. */
const TIMEOUT_MS = 100

/** Input of `RedisDigests`. */
interface RedisDigestsOptions {
  readonly url: string
  readonly namespace: string
  readonly key: Buffer
  /** Called for each entry that was not sealed by a node of this gateway. */
  readonly onUntrusted: () => void
  /** Unix milliseconds. */
  readonly nowMs?: () => number
}

/**
 * Digests of several nodes: remembered by the node that saw them, and in Redis for the others. Entries there are
 * sealed; what Redis returns beyond them is ignored.
 */
export class RedisDigests implements DigestStore {
  readonly #local: LocalDigests
  /** Receives changes of other nodes; undefined if there are none. Subscribing needs a separate connection. */
  readonly #changes: RedisConnection | undefined
  readonly #connection: RedisConnection
  readonly #rules: DigestRules
  readonly #options: RedisDigestsOptions
  readonly #nowMs: () => number
  /** Maximum number of entries, as it was last stated. */
  #most = 0

  /** Starts to connect at once. */
  constructor(rules: DigestRules, options: RedisDigestsOptions) {
    this.#rules = rules
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#local = new LocalDigests(rules)
    this.#connection = new RedisConnection(options.url, {
      heartbeat: async (client) => void (await client.ping()),
      onLost: () => {},
    })
    if (!rules.changes) return
    this.#changes = new RedisConnection(options.url, {
      onConnected: (client) =>
        // Received as bytes, so that no string is made of a message that is too long.
        client.subscribe(this.#channel, (message) => this.#onChange(message), true),
      heartbeat: async (client) => void (await client.ping()),
      onLost: () => {},
    })
  }

  find(
    digests: readonly Buffer[],
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined | Promise<FoundDigest | undefined> {
    const own = this.#local.find(digests, isPlausible)
    // Another node may know more of it, unless all but the appended turns are known here.
    const newer = digests.slice(0, Math.min(own?.index ?? digests.length, MAX_DIGESTS))
    const { client } = this.#connection
    if (!client || newer.length < (own ? MIN_NEWER : this.#rules.minSearched)) return own
    return withTimeout(client.mGet(newer.map((digest) => this.#nameOf(digest))), TIMEOUT_MS)
      .then((entries) => this.#firstOf(newer, entries, isPlausible) ?? own)
      .catch(() => own)
  }

  remember(digest: Buffer, value: number, retention: Retention): void {
    const known = this.#changes && this.#knownHere(digest)
    this.#local.remember(digest, value, retention)
    this.#most = retention.most
    const { client } = this.#connection
    if (!client) return
    const entry = sealed(this.#options.key, digest, value, Math.floor(this.#nowMs() + retention.ms))
    const expiration = { type: 'PX', value: Math.ceil(retention.ms) } as const
    client.set(this.#nameOf(digest), entry, { expiration }).catch(() => {})
    if (known !== undefined && known !== value)
      client.publish(this.#channel, `${digest.toString('base64url')}.${entry}`).catch(() => {})
  }

  async close(): Promise<void> {
    await Promise.all([this.#connection.close(), this.#changes?.close()])
  }

  /** Takes over a change of another node, if this node knows the entry and would not ask Redis for it. */
  #onChange(message: Buffer): void {
    const [digest, entry] = message.length > MAX_CHANGE_LENGTH ? NO_CHANGE : changeOf(message)
    const opened = openedEntry(this.#options.key, digest, entry)
    if (!opened) return this.#options.onUntrusted()
    const ms = opened.expiresMs - this.#nowMs()
    const known = this.#knownHere(digest)
    if (ms > 0 && known !== undefined && known !== opened.value)
      this.#local.remember(digest, opened.value, { ms, most: this.#most })
  }

  #knownHere(digest: Buffer): number | undefined {
    return this.#local.find([digest], () => true)?.value
  }

  get #channel(): string {
    return `${this.#options.namespace}:${this.#rules.kind}:changes`
  }

  #firstOf(
    digests: readonly Buffer[],
    entries: unknown,
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined {
    if (!Array.isArray(entries)) return undefined
    for (const [index, digest] of digests.entries()) {
      const entry: unknown = entries[index]
      if (entry === null || entry === undefined) continue
      const opened = openedEntry(this.#options.key, digest, entry)
      if (!opened) this.#options.onUntrusted()
      else if (opened.expiresMs > this.#nowMs() && isPlausible({ index, value: opened.value }))
        return { index, value: opened.value }
    }
    return undefined
  }

  #nameOf(digest: Buffer): string {
    return `${this.#options.namespace}:${this.#rules.kind}:${digest.toString('base64url', 0, DIGEST_KEY_BYTES)}`
  }
}

/** Clients usually append two turns: the answer, and what follows it. */
const MIN_NEWER = 3

const ENTRY = /^(\d{1,10})\.(\d{1,15})\.([\w-]{43})$/
const MAX_ENTRY_LENGTH = 80
const MAX_CHANGE_LENGTH = 44 + MAX_ENTRY_LENGTH

const NO_CHANGE = [Buffer.alloc(0), ''] as const

function changeOf(message: Buffer): readonly [digest: Buffer, entry: string] {
  const text = message.toString('latin1')
  const dot = text.indexOf('.')
  return [Buffer.from(text.slice(0, dot), 'base64url'), text.slice(dot + 1)]
}

function sealed(key: Buffer, digest: Buffer, value: number, expiresMs: number): string {
  return `${value}.${expiresMs}.${tagOf(key, digest, value, expiresMs).toString('base64url')}`
}

/** The digest covers user, channel, model and conversation. */
function tagOf(key: Buffer, digest: Buffer, value: number, expiresMs: number): Buffer {
  return createHmac('sha256', key).update('entry\n').update(digest).update(`${value}.${expiresMs}`).digest()
}

/** Opens an entry; undefined if it was not sealed with this key for this digest. */
function openedEntry(
  key: Buffer,
  digest: Buffer,
  entry: unknown,
): { readonly value: number; readonly expiresMs: number } | undefined {
  if (typeof entry !== 'string' || entry.length > MAX_ENTRY_LENGTH) return undefined
  const [, value, expires, tag = ''] = ENTRY.exec(entry) ?? []
  if (value === undefined) return undefined
  const opened = { value: Number(value), expiresMs: Number(expires) }
  const wanted = tagOf(key, digest, opened.value, opened.expiresMs)
  return timingSafeEqual(Buffer.from(tag, 'base64url'), wanted) ? opened : undefined
}
