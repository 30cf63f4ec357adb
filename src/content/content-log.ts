import { existsSync } from 'node:fs'
import type { BucketKey, ContentLogSettings, ContentPolicy } from '../domain/content-log.ts'
import type { Secrets } from '../store/secrets.ts'
import { TwoLevelPool } from '../limits/fair-pool.ts'
import {
  type CapturableCall,
  type CapturedCall,
  type CaptureQueue,
  ContentCapture,
  type DropReason,
} from './content-capture.ts'
import { batchOf } from './batch.ts'
import { ContentThread } from './content-thread.ts'
import type { ContentDeletion, ContentSummary, ReadContent } from './messages.ts'
import type { ContentBytes } from './parts.ts'

/**
 * Maximum bytes of content that are held until they are written: of calls under way, in the queue, and in the
 * thread. A user alone may have most of it.
 */
const MAX_HELD_BYTES = 64 * 1024 * 1024
const ALONE_SHARE = 3 / 4
/** The queue is written when it holds this much, or has waited this long. Objects of a bucket are fewer and larger. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024
const MAX_WAIT_MS = { database: 500, s3: 30_000 } as const
/** Batches that the thread may have; more wait in the queue. */
const MAX_UNDER_WAY = 2
/** Pause before a batch that could not be written is tried again: at first, and at most. */
const MIN_RETRY_MS = 500
const MAX_RETRY_MS = 10_000
/** Time for which the end of the gateway waits for the queue. */
const CLOSE_MS = 5_000
/** How long a deletion waits for what is being written. */
const DELETE_WAIT_MS = 2_000
/** Copies of a content that a read makes: as it is stored, opened, as text, and as response. */
const READ_COPIES = 8

/** Bytes that may wait in the thread to be redacted for somebody else. */
const MAX_REDACTING_BYTES = 16 * 1024 * 1024

/** Parts of the content log. */
export interface ContentLogServices {
  readonly secrets: Secrets
  /** Folder of the files of the embedded database; undefined with PostgreSQL. */
  readonly folder: string | undefined
  readonly databaseUrl: string | undefined
  /** Credentials for a bucket; undefined if there are none. */
  readonly bucketKey: BucketKey | undefined
  readonly settings: () => ContentLogSettings
  readonly onDropped: (reason: DropReason) => void
  readonly warn: (sentence: string) => void
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
}

interface Queued {
  readonly call: CapturedCall
  readonly content: ContentBytes
  readonly held: number
}

/**
 * What was said, if it is to be kept: collected beside the calls, and written in batches by a thread. Nothing
 * here delays or fails a call. `docs/content-log.md`.
 */
export class ContentLog implements CaptureQueue {
  readonly #services: ContentLogServices
  readonly #thread: ContentThread
  readonly #pool: TwoLevelPool
  #queue: Queued[] = []
  #queuedBytes = 0
  #timer: NodeJS.Timeout | undefined
  readonly #writing = new Set<Promise<void>>()
  #isClosed = false
  #redactingBytes = 0

  constructor(services: ContentLogServices) {
    this.#services = services
    const { secrets, folder, databaseUrl, bucketKey, settings } = services
    this.#thread = new ContentThread({ secrets, folder, databaseUrl, bucketKey }, () => settings().store)
    this.#pool = new TwoLevelPool({
      max: () => MAX_HELD_BYTES,
      aloneShare: ALONE_SHARE,
      nowMs: services.nowMs,
    })
  }

  /** Bytes that are held until they are written. */
  get held(): number {
    return this.#pool.held
  }

  /** Begins to collect the content of a call. */
  capture(
    call: CapturableCall,
    requestReceived: Buffer | undefined,
    decide: () => ContentPolicy | undefined,
  ): ContentCapture {
    return new ContentCapture(call, this, requestReceived, decide)
  }

  take({ userId, tokenId }: CapturableCall, bytes: number): boolean {
    return bytes === 0 || this.#pool.take({ client: userId, key: tokenId }, bytes)
  }

  give({ userId, tokenId }: CapturableCall, bytes: number): void {
    if (bytes > 0) this.#pool.give({ client: userId, key: tokenId }, bytes)
  }

  add(call: CapturedCall, content: ContentBytes, held: number): void {
    this.#queue.push({ call, content, held })
    this.#queuedBytes += held
    if (this.#queuedBytes >= MAX_QUEUED_BYTES) this.#writeQueue()
    else if (!this.#timer) {
      const waitMs = MAX_WAIT_MS[this.#services.settings().store.kind]
      this.#timer = setTimeout(() => this.#writeQueue(), waitMs).unref()
    }
  }

  dropped(reason: DropReason): void {
    this.#services.onDropped(reason)
  }

  /** Summaries of those calls whose content is kept, by id. */
  async find(ids: readonly string[]): Promise<ReadonlyMap<string, ContentSummary>> {
    if (ids.length === 0 || this.#isUnused) return new Map()
    const found = await this.#thread.ask('find', ids)
    return new Map(found.map((summary) => [summary.id, summary]))
  }

  /** Bytes of memory that reading a content takes. */
  bytesToRead({ bytes }: ContentSummary): number {
    return bytes * READ_COPIES
  }

  /** A part as level `redacted` keeps it, made in the thread. Rejects if too much waits for that. */
  async redact(part: Buffer): Promise<Buffer> {
    if (this.#redactingBytes + part.length > MAX_REDACTING_BYTES)
      throw new Error('too much waits to be redacted')
    this.#redactingBytes += part.length
    try {
      return Buffer.from(await this.#thread.ask('redact', part))
    } finally {
      this.#redactingBytes -= part.length
    }
  }

  read(id: string): Promise<ReadContent | undefined> {
    return this.#thread.ask('read', id)
  }

  /**
   * Deletes content. When this resolves, nothing of it can be read any more, by anybody. Resolves to whether
   * anything of it was kept.
   */
  async delete(deletion: ContentDeletion): Promise<boolean> {
    // What cannot be written now is covered by the mark that the deletion leaves.
    await this.#flushWithin(DELETE_WAIT_MS)
    if (this.#isUnused) return false
    return this.#thread.ask('delete', deletion)
  }

  /** The users of whom content may be kept. */
  async users(): Promise<readonly number[]> {
    return this.#isUnused ? [] : this.#thread.ask('users', undefined)
  }

  async prune(): Promise<{ readonly removedContents: number }> {
    if (this.#isUnused) return { removedContents: 0 }
    const { removedContents } = await this.#thread.ask('prune', undefined)
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

  /** Resolves when everything that was in the queue is written. */
  async flush(): Promise<void> {
    this.#writeQueue(true)
    await Promise.all(this.#writing)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#flushWithin(CLOSE_MS)
    await this.#thread.close()
  }

  async #flushWithin(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
    await Promise.race([this.flush(), late])
    clearTimeout(timer)
  }

  /** Whether nothing was ever kept here. A shared database is always asked. */
  get #isUnused(): boolean {
    const { folder } = this.#services
    return folder !== undefined && !this.#thread.isRunning && !existsSync(folder)
  }

  #writeQueue(isUrgent = false): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#queue.length === 0) return
    if (this.#writing.size >= MAX_UNDER_WAY && !isUrgent) return
    const queued = this.#queue
    this.#queue = []
    this.#queuedBytes = 0
    const writing = this.#write(queued).finally(() => {
      this.#writing.delete(writing)
      this.#giveBack(queued)
      if (this.#queue.length > 0) this.#writeQueue()
    })
    this.#writing.add(writing)
  }

  /** Gives memory back, at once for calls of one key that follow each other. */
  #giveBack(queued: readonly Queued[]): void {
    let sum = 0
    for (const [index, { call, held }] of queued.entries()) {
      sum += held
      const next = queued[index + 1]?.call
      if (next?.userId === call.userId && next.tokenId === call.tokenId) continue
      this.give(call, sum)
      sum = 0
    }
  }

  async #write(queued: readonly Queued[]): Promise<void> {
    for (let pauseMs = MIN_RETRY_MS; ; pauseMs = Math.min(MAX_RETRY_MS, pauseMs * 2)) {
      try {
        const batch = batchOf(queued)
        return await this.#thread.ask('write', batch, [batch.bytes.buffer, batch.numbers.buffer])
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (this.#isClosed) {
          for (const _ of queued) this.dropped('failed')
          return
        }
        this.#services.warn(`the content log cannot be written (${reason}); tried again`)
        await new Promise((resolve) => setTimeout(resolve, pauseMs).unref())
      }
    }
  }
}
