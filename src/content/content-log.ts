import { existsSync, mkdirSync } from 'node:fs'
import type { BucketCredentials } from '../domain/bucket.ts'
import type { ContentLogSettings, ContentPolicy } from '../domain/content-log.ts'
import type { CallKind } from '../domain/endpoints.ts'
import type { Secrets } from '../store/secrets.ts'
import { ServiceEnded } from '../ipc/service.ts'
import { TwoLevelPool } from '../limits/fair-pool.ts'
import {
  type CapturableCall,
  type CapturedCall,
  type CaptureQueue,
  ContentCapture,
  type DropReason,
} from './content-capture.ts'
import {
  callsOfBatch,
  type ContentBatch,
  GrowingBatch,
  halvesOfBatch,
  reservedBytesOfBatch,
} from './batch.ts'
import { ContentThread } from './content-thread.ts'
import type { Excerpt } from './excerpts.ts'
import type { ContentDeletion, ContentSummary, ContentOfCall } from './messages.ts'
import type { ContentBytes } from './parts.ts'

/**
 * Maximum bytes of content in memory until it is written: of running calls, in the queue, and in the thread.
 * A user who is alone may hold `ALONE_SHARE` of it.
 */
const MAX_HELD_BYTES = 64 * 1024 * 1024
const ALONE_SHARE = 3 / 4
/**
 * The queue is written when it holds this many bytes, or after this many milliseconds; later for a bucket, so
 * that it gets fewer and larger objects.
 */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024
const MAX_WAIT_MS = { database: 500, s3: 30_000 } as const
/** Maximum size in bytes of a batch's memory that is used for another batch. */
const MAX_REUSED_BYTES = 2 * MAX_QUEUED_BYTES
/** Maximum number of batches that the thread is given at a time; further calls wait in the queue. */
const MAX_UNDER_WAY = 2
/**
 * Milliseconds until a batch that could not be written is tried again; the pause doubles up to the maximum.
 */
const MIN_RETRY_MS = 500
const MAX_RETRY_MS = 10_000
/**
 * If the thread crashes this often while it writes a batch, the halves of the batch are written separately.
 * If it crashes this often with a single call, the content of that call is dropped.
 */
const MAX_ENDS = 2
/** Milliseconds for which the shutdown of the gateway waits for the queue to be written. */
const CLOSE_MS = 5_000
/** Milliseconds for which a deletion waits for content that is being written. */
const DELETE_WAIT_MS = 2_000
/**
 * Number of copies of a content that exist in memory while it is read: stored, decrypted, as text, as a conversation,
 * and both in the response.
 */
const READ_COPIES = 12

/**
 * Milliseconds after which a search or a read fails. The thread may be busy with others, and the database or the
 * bucket may be slow.
 */
const READ_MS = 30_000

/** Maximum number of searches for calls' content that wait for the thread. */
const MAX_FINDING = 200

/** Maximum bytes that wait for the thread to redact them on behalf of telemetry. */
const MAX_REDACTING_BYTES = 16 * 1024 * 1024

/** Services and settings that the content log needs. */
export interface ContentLogServices {
  readonly secrets: Secrets
  /** Folder of the files of the embedded database; undefined if PostgreSQL is used. */
  readonly folder: string | undefined
  readonly databaseUrl: string | undefined
  /** Credentials for the bucket in which content may be stored; undefined if there are none. */
  readonly bucketKey: BucketCredentials | undefined
  readonly settings: () => ContentLogSettings
  /** Whether the file system of `folder` has room for content. */
  readonly hasRoom: () => boolean
  readonly onDropped: (reason: DropReason) => void
  readonly warn: (sentence: string) => void
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
  /** Maximum heap of the thread in MiB; 512 by default. */
  readonly heapMb?: number
  /** Milliseconds after which a search or a read fails; 30,000 by default. */
  readonly readMs?: number
}

/**
 * Keeps the requests and answers of calls, if the settings ask for it. They are collected while calls run,
 * and a thread writes them in batches, so that no call is delayed or fails. Another
 * thread reads them. `docs/content-log.md`.
 */
export class ContentLog implements CaptureQueue {
  readonly #services: ContentLogServices
  readonly #thread: ContentThread
  /**
   * Thread that searches and reads. The other thread may take many seconds to redact the content of one call;
   * readers must not wait for that.
   */
  readonly #reader: ContentThread
  readonly #pool: TwoLevelPool
  #queue = new GrowingBatch()
  /** Memory of a batch that was written, for the next one. */
  #memory: Uint8Array<ArrayBuffer> | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #writing = new Set<Promise<void>>()
  /**
   * Batches during which the thread has crashed. They are written one after another, so that a crash does not
   * affect other batches.
   */
  #suspects: Promise<void> = Promise.resolve()
  #isClosed = false
  #redactingBytes = 0
  #finding = 0
  #isFolderMade = false

  constructor(services: ContentLogServices) {
    this.#services = services
    const { secrets, folder, databaseUrl, bucketKey, settings, heapMb } = services
    const started = (): ContentThread =>
      new ContentThread({ secrets, folder, databaseUrl, bucketKey }, () => settings().store, heapMb)
    this.#thread = started()
    this.#reader = started()
    // A list of calls waits a second at most for content, so the first one should not wait for this thread's start.
    if (folder !== undefined && existsSync(folder)) this.#reader.start()
    this.#pool = new TwoLevelPool({
      max: () => MAX_HELD_BYTES,
      aloneShare: ALONE_SHARE,
      nowMs: services.nowMs,
    })
  }

  /** Bytes of content in memory that are not written yet. */
  get held(): number {
    return this.#pool.held
  }

  /** Starts collecting the content of a call. */
  capture(
    call: CapturableCall,
    requestReceived: Buffer | undefined,
    decide: () => ContentPolicy | undefined,
    shown?: (answer: Buffer) => Buffer,
  ): ContentCapture {
    this.#makeFolder()
    return new ContentCapture(call, this, requestReceived, decide, shown)
  }

  /** Gives both threads the secrets in their present state, after `settleSecrets` has changed them. */
  replaceSecrets(secrets: Secrets): void {
    for (const thread of [this.#thread, this.#reader]) thread.replaceSecrets(secrets)
  }

  take({ userId, tokenId }: CapturableCall, bytes: number): boolean {
    return bytes === 0 || this.#pool.take({ client: userId, key: tokenId }, bytes)
  }

  give({ userId, tokenId }: CapturableCall, bytes: number): void {
    if (bytes > 0) this.#pool.give({ client: userId, key: tokenId }, bytes)
  }

  add(call: CapturedCall, content: ContentBytes, held: number): void {
    try {
      if (!this.#hasRoom) throw new Error('there is no room for content')
      this.#queue.add(call, content, held)
    } catch {
      this.give(call, held)
      return this.dropped('full')
    }
    if (this.#queue.reserved >= MAX_QUEUED_BYTES) this.#writeQueue()
    else if (!this.#timer) {
      const waitMs = MAX_WAIT_MS[this.#services.settings().store.kind]
      this.#timer = setTimeout(() => this.#writeQueue(), waitMs).unref()
    }
  }

  /** A bucket states no size; what it leaves in the database is small. */
  get #hasRoom(): boolean {
    const { settings, hasRoom } = this.#services
    return settings().store.kind === 's3' || hasRoom()
  }

  dropped(reason: DropReason): void {
    this.#services.onDropped(reason)
  }

  /**
   * Returns summaries of those calls whose content is kept, by call id. Rejects if the thread fails or takes
   * too long, or if too many searches wait for it.
   */
  async find(ids: readonly string[]): Promise<ReadonlyMap<string, ContentSummary>> {
    if (ids.length === 0 || this.#isUnused) return new Map()
    if (this.#finding === MAX_FINDING) throw new Error('too much waits to be found')
    this.#finding += 1
    // A search that timed out still counts towards the maximum until the thread has finished it.
    const asked = this.#reader.ask('find', ids).finally(() => (this.#finding -= 1))
    const found = await this.#inTime(asked)
    return new Map(found.map((summary) => [summary.id, summary]))
  }

  /** Bytes of memory that reading a call's content takes. */
  bytesToRead({ bytes }: ContentSummary): number {
    return bytes * READ_COPIES
  }

  /**
   * Redacts a part of a call's content in the thread, as the content level `redacted` does; undefined if the
   * part cannot be searched for secrets. Rejects if too many bytes wait to be redacted.
   */
  async redact(part: Buffer): Promise<Buffer | undefined> {
    if (this.#redactingBytes + part.length > MAX_REDACTING_BYTES)
      throw new Error('too much waits to be redacted')
    this.#redactingBytes += part.length
    try {
      const redacted = await this.#thread.ask('redact', part)
      return redacted && Buffer.from(redacted)
    } finally {
      this.#redactingBytes -= part.length
    }
  }

  /**
   * Reads the content of a call; `kind` is its endpoint if that is known. Rejects if the thread fails or takes too
   * long.
   */
  read(id: string, kind: CallKind = ''): Promise<ContentOfCall | undefined> {
    return this.#inTime(this.#reader.ask('read', { id, kind }))
  }

  /**
   * The last place of a call's conversation that has these words, or its first words if none are given;
   * undefined if there is none. Rejects if the thread fails or takes longer than `ms`.
   */
  excerpt(id: string, kind: CallKind, words: string | undefined, ms: number): Promise<Excerpt | undefined> {
    return this.#inTime(this.#reader.ask('excerpt', { id, kind, words }), ms)
  }

  /**
   * Deletes content. When this resolves, nobody can read that content any more. Resolves to whether any
   * content was deleted.
   */
  async delete(deletion: ContentDeletion): Promise<boolean> {
    // Content that cannot be written in time is not stored later either: the stored record of the deletion
    // prevents it.
    await this.#flushWithin(DELETE_WAIT_MS)
    if (this.#isUnused) return false
    return this.#thread.ask('delete', deletion)
  }

  /** The ids of users whose content may be kept. */
  async users(): Promise<readonly number[]> {
    return this.#isUnused ? [] : this.#thread.ask('users', undefined)
  }

  async prune(): Promise<{ readonly removedContents: number }> {
    if (this.#isUnused) return { removedContents: 0 }
    const { removedContents, stuck } = await this.#thread.ask('prune', undefined)
    if (stuck !== undefined)
      this.#services.warn(
        `a deletion of content is not complete (${stuck}): it can no longer be read, but its data key still exists; tried again in an hour`,
      )
    return { removedContents: removedContents + (await this.#sweep()) }
  }

  async #sweep(): Promise<number> {
    if (this.#services.settings().store.kind !== 's3') return 0
    return this.#thread.ask('sweep', undefined).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error)
      this.#services.warn(
        `objects past their time are still in the bucket (${reason}); tried again in an hour`,
      )
      return 0
    })
  }

  /** Writes the queue, and resolves when everything in it is written. */
  async flush(): Promise<void> {
    this.#writeQueue(true)
    await Promise.all(this.#writing)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#flushWithin(CLOSE_MS)
    await Promise.all([this.#thread.close(), this.#reader.close()])
  }

  async #inTime<Value>(asked: Promise<Value>, ms = this.#services.readMs ?? READ_MS): Promise<Value> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      const error = new Error('the content log did not answer in time')
      timer = setTimeout(reject, ms, error)
    })
    try {
      return await Promise.race([asked, late])
    } finally {
      clearTimeout(timer)
    }
  }

  async #flushWithin(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
    await Promise.race([this.flush(), late])
    clearTimeout(timer)
  }

  /**
   * Makes the folder before any content is written. If the folder exists, a deletion by any process knows
   * that content may be on its way, and stores a record that prevents it from being written.
   */
  #makeFolder(): void {
    const { folder } = this.#services
    if (this.#isFolderMade || folder === undefined) return
    this.#isFolderMade = true
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
    } catch {
      // The thread, which writes to the folder, will fail in the same way and report the error.
    }
  }

  /**
   * Whether this gateway has never kept content and none is on its way. Always false for PostgreSQL, which
   * other nodes use too.
   */
  get #isUnused(): boolean {
    const { folder } = this.#services
    return folder !== undefined && !this.#thread.isRunning && !existsSync(folder)
  }

  #writeQueue(isUrgent = false): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#queue.size === 0) return
    if (this.#writing.size >= MAX_UNDER_WAY && !isUrgent) return
    const queue = this.#queue
    this.#queue = new GrowingBatch(this.#memory)
    this.#memory = undefined
    const batch = queue.batch()
    const writing = this.#write(batch).finally(() => {
      this.#writing.delete(writing)
      for (const { userId, tokenId, bytes } of reservedBytesOfBatch(batch))
        this.#pool.give({ client: userId, key: tokenId }, bytes)
      const { length } = queue.memory
      const isUsed = batch.bytes.length > length / 4
      this.#memory = isUsed && length <= MAX_REUSED_BYTES ? queue.memory : undefined
      if (this.#queue.size > 0) this.#writeQueue()
    })
    this.#writing.add(writing)
  }

  async #write(batch: ContentBatch, maxEnds = MAX_ENDS): Promise<void> {
    let ends = 0
    for (let pauseMs = MIN_RETRY_MS; ; pauseMs = Math.min(MAX_RETRY_MS, pauseMs * 2)) {
      try {
        // The thread gets its own copy, because the batch is sent again if the thread crashes.
        const bytes = batch.bytes.slice()
        const lost = await this.#thread.ask('write', { ...batch, bytes }, [bytes.buffer])
        for (const reason of lost) this.dropped(reason)
        return
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (this.#isClosed) {
          for (const _ of callsOfBatch(batch)) this.dropped('failed')
          return
        }
        if (error instanceof ServiceEnded && error.reason === 'ended') ends += 1
        if (ends === maxEnds) return this.#writeApart(batch, maxEnds === MAX_ENDS)
        this.#services.warn(`the content log cannot be written (${reason}); tried again`)
        await new Promise((resolve) => setTimeout(resolve, pauseMs).unref())
      }
    }
  }

  /**
   * Writes the halves of a batch separately, because the thread crashes while it writes it. A batch of a
   * single call is dropped.
   */
  async #writeApart(batch: ContentBatch, isFirst: boolean): Promise<void> {
    if (callsOfBatch(batch).length === 1) {
      this.#services.warn(
        'the thread of the content log ends with the content of a call, which is not kept; please report this',
      )
      return this.dropped('failed')
    }
    const writing = async (): Promise<void> => {
      for (const half of halvesOfBatch(batch))
        await this.#write(half, callsOfBatch(half).length > 1 ? 1 : MAX_ENDS)
    }
    if (!isFirst) return writing()
    return (this.#suspects = this.#suspects.then(writing))
  }
}
