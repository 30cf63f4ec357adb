import { createHmac, timingSafeEqual } from 'node:crypto'
import { withTimeout } from '../domain/with-timeout.ts'
import { BoundedEntries, type EntryRetention } from './bounded-entries.ts'
import { checkWrites, RedisConnection, type RedisConnectionHandlers } from './redis-connection.ts'

/** What nodes share in tables. The name of a kind is also a part of its keys in Redis. */
export const SHARED_KINDS = {
  /** How many tokens prompts had. */
  prompt: { maxBytes: 112, changes: false },
  /** The account that has a session's cache. A node that knows it does not ask Redis, so changes are announced. */
  session: { maxBytes: 112, changes: true },
  /** The last call of a session. Only the names of its channel and model may be long. */
  previous: { maxBytes: 4_096, changes: false },
} as const satisfies Record<string, SharedKindRules>

/** Name of a kind of shared entries. */
export type SharedKind = keyof typeof SHARED_KINDS

interface SharedKindRules {
  /** Entries with more bytes are neither written nor read. */
  readonly maxBytes: number
  /** Whether changes of values are announced to the other nodes. */
  readonly changes: boolean
}

/** How values are written as text. */
export interface Codec<Value> {
  encode(value: Value): string
  /** Only texts that `encode` has made are decoded: their seal was verified. */
  decode(text: string): Value
}

/** A verified entry. */
export interface SharedEntry<Value> {
  readonly value: Value
  /** Unix milliseconds. */
  readonly expiresMs: number
}

/** Options of `SharedTable`. */
export interface SharedTableOptions {
  readonly url: string
  readonly namespace: string
  /** Secret key of the seals: 32 bytes. */
  readonly key: Buffer
  /** Called for each entry whose seal shows that no node of this gateway wrote it under that name. */
  readonly onUntrusted: (kind: SharedKind) => void
  /** The time of day in Unix milliseconds. */
  readonly nowMs?: () => number
}

/** A value to share, the user to whom it belongs, and how long it is kept. */
export interface SharedWrite<Value> {
  /** Id of the user, whose other entries give way if the user has more than a fair share. */
  readonly owner: number
  readonly name: string
  readonly value: Value
  readonly retention: EntryRetention
}

/** Maximum wait for an answer of Redis, in milliseconds. A call then goes on with what this node knows. */
const TIMEOUT_MS = 100
const SEAL_LENGTH = 43
/** An entry: its text, its expiry in Unix milliseconds, and the seal of both. */
const ENTRY = /^(.*)\.(\d{1,15})$/s

/**
 * Entries that all nodes read and write in one Redis. Each has a seal, an HMAC of kind, name, value and expiry.
 * What was not sealed under its name is ignored and reported, because others may write to Redis too.
 */
export class SharedTable<Value> {
  readonly #kind: SharedKind
  readonly #codec: Codec<Value>
  readonly #options: SharedTableOptions
  readonly #nowMs: () => number
  readonly #entries: BoundedEntries
  readonly #connection: RedisConnection
  /** Receives changes by other nodes, which takes a separate connection; undefined if values do not change. */
  readonly #changes: RedisConnection | undefined
  #isLost = false
  #knownSinceMs = 0

  /** Starts to connect at once. `onChange` receives the changes that other nodes announce. */
  constructor(
    kind: SharedKind,
    codec: Codec<Value>,
    options: SharedTableOptions,
    onChange: (entry: SharedEntry<Value>) => void = () => {},
  ) {
    this.#kind = kind
    this.#codec = codec
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#entries = new BoundedEntries(options.namespace, kind)
    const heartbeat: RedisConnectionHandlers['heartbeat'] = (client) => checkWrites(client, options.namespace)
    this.#connection = new RedisConnection(options.url, {
      heartbeat,
      onConnected: async (client) => {
        if (this.#isLost) this.#knownSinceMs = this.#nowMs()
        await this.#entries.load(client)
      },
      onLost: () => (this.#isLost = true),
    })
    if (!SHARED_KINDS[kind].changes) return
    const received = (message: Buffer): void => {
      const change = this.#openedChange(message)
      if (change) onChange(change)
    }
    this.#changes = new RedisConnection(options.url, {
      heartbeat,
      // Messages are received as bytes, so that one that is too long is not converted to a string.
      onConnected: (client) => client.subscribe(this.#channel, received, true),
      onLost: () => {},
    })
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#connection.firstAttempt
  }

  get isConnected(): boolean {
    return this.#connection.client !== undefined
  }

  /**
   * When the connection was made again after it was lost, in Unix milliseconds; 0 if it was never lost. Writes
   * before that time may be missing.
   */
  get knownSinceMs(): number {
    return this.#knownSinceMs
  }

  /**
   * Reads entries by their names. The result has one item for each name, undefined if there is no entry, or no
   * trusted one. Items are verified as they are taken. Without a timely answer, the result is empty.
   */
  async read(names: readonly string[]): Promise<Iterable<SharedEntry<Value> | undefined>> {
    const { client } = this.#connection
    if (!client) return []
    const { maxBytes } = SHARED_KINDS[this.#kind]
    const read = withTimeout(this.#entries.read(client, names, maxBytes), TIMEOUT_MS).catch(() => [])
    return this.#opened(names, await read)
  }

  /** Writes an entry without waiting for Redis. `isChange`: other nodes may know another value. */
  write({ owner, name, value, retention }: SharedWrite<Value>, isChange = false): void {
    const { client } = this.#connection
    if (!client) return
    const entry = this.#sealed(name, value, Math.floor(this.#nowMs() + retention.ms))
    if (Buffer.byteLength(entry) > SHARED_KINDS[this.#kind].maxBytes) return
    this.#entries.set(client, { owner, name, entry }, this.#nowMs(), retention).catch(() => {})
    if (isChange && this.#changes) client.publish(this.#channel, `${name} ${entry}`).catch(() => {})
  }

  async close(): Promise<void> {
    await Promise.all([this.#connection.close(), this.#changes?.close()])
  }

  *#opened(names: readonly string[], entries: readonly unknown[]): Generator<SharedEntry<Value> | undefined> {
    for (const [index, entry] of entries.entries())
      yield entry === '' ? undefined : this.#open(names[index] as string, entry)
  }

  #openedChange(message: Buffer): SharedEntry<Value> | undefined {
    const text = message.length > 2 * SHARED_KINDS[this.#kind].maxBytes ? '' : message.toString()
    const [name = '', entry] = /^(\S+) (.*)$/s.exec(text)?.slice(1) ?? []
    return this.#open(name, entry)
  }

  #open(name: string, entry: unknown): SharedEntry<Value> | undefined {
    const isEntry = typeof entry === 'string' && entry.length <= SHARED_KINDS[this.#kind].maxBytes
    const sealed = isEntry ? entry.slice(0, -SEAL_LENGTH - 1) : ''
    const [, text, expires] = ENTRY.exec(sealed) ?? []
    const seal = Buffer.from(isEntry ? entry.slice(-SEAL_LENGTH) : '', 'base64url')
    const expected = this.#sealOf(name, sealed)
    if (text === undefined || seal.length !== expected.length || !timingSafeEqual(seal, expected)) {
      this.#options.onUntrusted(this.#kind)
      return undefined
    }
    const expiresMs = Number(expires)
    return expiresMs > this.#nowMs() ? { value: this.#codec.decode(text), expiresMs } : undefined
  }

  #sealed(name: string, value: Value, expiresMs: number): string {
    const text = `${this.#codec.encode(value)}.${expiresMs}`
    return `${text}.${this.#sealOf(name, text).toString('base64url')}`
  }

  #sealOf(name: string, text: string): Buffer {
    return createHmac('sha256', this.#options.key).update(`${this.#kind} ${name}\n`).update(text).digest()
  }

  get #channel(): string {
    return `${this.#options.namespace}:${this.#kind}:changes`
  }
}
