import { setTimeout as delay } from 'node:timers/promises'
import type { ProtocolName } from '@sluice/wire/protocols'
import { LRUCache } from 'lru-cache'
import type { Metrics } from '../../telemetry/metrics.ts'
import { parseRecord } from '@sluice/wire/json/record'
import { MAX_SIGNED_CHARACTERS } from '@sluice/wire/signature-envelope'
import { readSignedParts, type SignedParts, signedPartsText } from '@sluice/wire/signatures'
import type { KeptStore } from '../../store/kept-store.ts'
import type { EntryToKeep } from '../../store/operations/kept.ts'

/** Maximum characters of cached signatures; the least recently used are removed. */
const MAX_MEMORY = 16 * 1024 * 1024
/**
 * Maximum number of anchors that are looked up for one request, the latest first. An anchor identifies the
 * place of a signed reply in a conversation.
 */
const MAX_ANCHORS = 1_000
/** Maximum characters of signed parts that are restored in one request, the latest turns first. */
const MAX_RESTORED = 16 * 1024 * 1024
/**
 * Milliseconds for which an anchor (place in a conversation) that was not found in the database is not looked
 * up again.
 */
const MISSING_MS = 60_000
/** Estimated characters of a cache entry in addition to its content. */
const ENTRY = 200

/** Account that signed a reply; only this account accepts the signatures. */
export interface SigningAccount {
  readonly protocol: ProtocolName
  readonly channel: string
  /** Keyed hash of the API key that was used. */
  readonly keyTag: string
}

/** Signed parts and the account that signed them. */
export interface SignedEntry extends SigningAccount {
  readonly run: SignedParts
  /** Length of the signed parts as text, in characters. */
  readonly size: number
}

/** Signed parts by their anchors, which identify places in a conversation. */
export type FoundSignatures = ReadonlyMap<string, SignedEntry>

/** Services that the store of signatures needs. */
export interface SignatureStoreDependencies {
  readonly kept: Pick<KeptStore, 'admits' | 'findAll' | 'writeFacts'>
  /** Computes a keyed hash of a text, to compare the text without storing it. */
  readonly tag: (purpose: 'upstream key' | 'signature', text: string) => string
  /** Whether other nodes write to the same database. */
  readonly isShared: boolean
  readonly metrics: Pick<Metrics, 'add'>
}

/** Cached result of a look-up. If `entry` is undefined, the database has no entry either. */
interface Remembered {
  readonly entry: SignedEntry | undefined
  readonly expiresMs: number
}

const NOTHING: FoundSignatures = new Map()

/**
 * Stores the signatures of converted replies. Finds them when clients send such a reply back without its
 * signatures. All nodes share the store. A missing signature is never an error.
 * `docs/decisions/stored-responses.md`.
 */
export class SignatureStore {
  readonly #dependencies: SignatureStoreDependencies
  readonly #writes: SignatureWrites
  readonly #memory = new LRUCache<string, Remembered>({
    maxSize: MAX_MEMORY,
    sizeCalculation: ({ entry }) => ENTRY + (entry?.size ?? 0),
  })

  constructor(dependencies: SignatureStoreDependencies) {
    this.#dependencies = dependencies
    this.#writes = new SignatureWrites(dependencies)
  }

  /** Keyed hash of a channel's API key. */
  keyTag(key: string): string {
    return this.#dependencies.tag('upstream key', key)
  }

  /**
   * Stores a reply's signed parts, by anchor (place in the conversation). This node can find them
   * immediately. Resolves when other nodes can find them, too, or after a maximum time.
   */
  keep(
    userId: number,
    account: SigningAccount,
    runs: ReadonlyMap<string, SignedParts>,
    retentionMs: number,
  ): Promise<void> {
    const storedMs = Date.now()
    const expiresMs = storedMs + retentionMs
    const entries = [...runs].map(([anchor, run]) => ({ anchor, run, text: signedPartsText(run) }))
    if (
      entries.length === 0 ||
      entries.reduce((sum, { text }) => sum + text.length, 0) > MAX_SIGNED_CHARACTERS
    )
      return Promise.resolve()
    const signatures = entries.map(({ anchor, run, text }): EntryToKeep => {
      const entry = { ...account, run, size: text.length }
      this.#memory.set(memoryKey(userId, anchor), { entry, expiresMs })
      const facts = JSON.stringify({ ...account, run: text })
      const about = { userId, tokenId: 0, model: '', createdMs: storedMs, expiresMs }
      return { kind: 'signature', key: this.#hash(userId, anchor), ...about, facts, bytes: facts.length }
    })
    if (!this.#dependencies.kept.admits('signature', 0)) {
      this.#dependencies.metrics.add('signatures', signatures.length, 'unwritten')
      return Promise.resolve()
    }
    this.#dependencies.metrics.add('signatures', signatures.length, 'kept')
    return this.#writes.write(signatures)
  }

  /** Finds the signed parts for these anchors (places in a user's conversation). */
  async find(userId: number, anchors: readonly string[]): Promise<FoundSignatures> {
    const nowMs = Date.now()
    const latest = anchors.slice(-MAX_ANCHORS)
    const unknown = latest.filter((anchor) => !this.#isRemembered(userId, anchor, nowMs))
    if (unknown.length > 0) await this.#load(userId, unknown, nowMs)
    return this.#remembered(userId, latest)
  }

  #isRemembered(userId: number, anchor: string, nowMs: number): boolean {
    const known = this.#memory.get(memoryKey(userId, anchor))
    return known !== undefined && known.expiresMs > nowMs
  }

  #remembered(userId: number, anchors: readonly string[]): FoundSignatures {
    const found = new Map<string, SignedEntry>()
    let size = 0
    for (const anchor of anchors.toReversed()) {
      const entry = this.#memory.get(memoryKey(userId, anchor))?.entry
      if (!entry) continue
      size += entry.size
      if (size > MAX_RESTORED) break
      found.set(anchor, entry)
    }
    if (found.size === 0) return NOTHING
    this.#dependencies.metrics.add('signatures', found.size, 'found')
    return found
  }

  // If the database is unavailable, the signatures count as missing for this request.
  async #load(userId: number, anchors: readonly string[], nowMs: number): Promise<void> {
    const byHash = new Map(anchors.map((anchor) => [this.#hash(userId, anchor), anchor]))
    const hashes = [...byHash.keys()]
    const found = await this.#dependencies.kept.findAll('signature', hashes, userId).catch(() => undefined)
    if (!found) return
    for (const { key: hash, facts, expiresMs } of found) {
      const anchor = byHash.get(hash)
      if (anchor === undefined) continue
      byHash.delete(hash)
      this.#memory.set(memoryKey(userId, anchor), { entry: entryOf(facts), expiresMs })
    }
    const missing = { entry: undefined, expiresMs: nowMs + MISSING_MS }
    for (const anchor of byHash.values()) {
      const key = memoryKey(userId, anchor)
      // A call that ended during the look-up may have stored the reply; then the anchor is not missing.
      if (!this.#isRemembered(userId, anchor, nowMs)) this.#memory.set(key, missing)
    }
  }

  #hash(userId: number, anchor: string): string {
    return this.#dependencies.tag('signature', `${userId}\n${anchor}`)
  }
}

function memoryKey(userId: number, anchor: string): string {
  return `${userId} ${anchor}`
}

function entryOf(facts: string): SignedEntry | undefined {
  const { protocol, channel, keyTag, run } = parseRecord(facts) ?? {}
  if (typeof protocol !== 'string' || typeof channel !== 'string') return undefined
  if (typeof keyTag !== 'string' || typeof run !== 'string') return undefined
  const read = readSignedParts(run)
  return read && { protocol: protocol as ProtocolName, channel, keyTag, run: read, size: run.length }
}

/** Maximum milliseconds that the end of a reply waits until other nodes can find its signatures. */
const MAX_WAIT_MS = 500
/** Maximum characters of signatures that wait to be written; further ones are discarded. */
const MAX_WAITING = 32 * 1024 * 1024

interface SignatureWritesDependencies extends Pick<SignatureStoreDependencies, 'isShared' | 'metrics'> {
  readonly kept: Pick<KeptStore, 'writeFacts'>
}

/** Signatures that are written together. */
interface Batch {
  readonly signatures: EntryToKeep[]
  readonly written: Promise<void>
  readonly start: () => void
}

/**
 * Writes signatures. Without other nodes, they are part of the commit that charges their call. On a shared
 * database, at most one commit runs at a time; the next one contains all signatures that arrived in the
 * meantime.
 */
export class SignatureWrites {
  readonly #dependencies: SignatureWritesDependencies
  #next: Batch | undefined
  #isWriting = false
  #waiting = 0

  constructor(dependencies: SignatureWritesDependencies) {
    this.#dependencies = dependencies
  }

  /** Resolves when the signatures of a reply are durable, could not be written, or take too long; never rejects. */
  write(signatures: readonly EntryToKeep[]): Promise<void> {
    if (!this.#dependencies.isShared) return this.#write(signatures)
    const size = sizeOf(signatures)
    if (this.#waiting + size > MAX_WAITING) {
      this.#dependencies.metrics.add('signatures', signatures.length, 'unwritten')
      return Promise.resolve()
    }
    this.#waiting += size
    const batch = (this.#next ??= this.#newBatch())
    batch.signatures.push(...signatures)
    this.#begin()
    return Promise.race([batch.written, delay(MAX_WAIT_MS, undefined, { ref: false })])
  }

  #newBatch(): Batch {
    const signatures: EntryToKeep[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    return { signatures, written: promise.then(() => this.#write(signatures)), start: resolve }
  }

  #begin(): void {
    const batch = this.#next
    if (this.#isWriting || !batch) return
    this.#isWriting = true
    this.#next = undefined
    batch.start()
    void batch.written.then(() => {
      this.#waiting -= sizeOf(batch.signatures)
      this.#isWriting = false
      this.#begin()
    })
  }

  async #write(signatures: readonly EntryToKeep[]): Promise<void> {
    try {
      await this.#dependencies.kept.writeFacts(signatures)
    } catch {
      this.#dependencies.metrics.add('signatures', signatures.length, 'unwritten')
    }
  }
}

function sizeOf(signatures: readonly EntryToKeep[]): number {
  return signatures.reduce((sum, { facts }) => sum + facts.length, 0)
}
