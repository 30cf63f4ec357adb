import type { BucketKey, ContentPlace } from '../domain/content-log.ts'
import type { ContentBatch } from './batch.ts'
import type { CapturedCall, DropReason } from './content-capture.ts'
import type { Secrets } from '../store/secrets.ts'

/** What the thread of the content log is started with. */
export interface ContentThreadOptions {
  readonly secrets: Secrets
  /** Folder of the day files of the embedded database; undefined with PostgreSQL. */
  readonly folder: string | undefined
  /** URL of the PostgreSQL database; undefined with the embedded one. */
  readonly databaseUrl: string | undefined
  /** Credentials for a bucket; undefined if there are none. */
  readonly bucketKey: BucketKey | undefined
}

/** What is known of a call's content without reading it. */
export interface ContentSummary {
  readonly id: string
  readonly userId: number
  readonly what: CapturedCall['what']
  readonly address: string
  readonly sha256: string
  /** Bytes of the parts in all. */
  readonly bytes: number
}

/** The content of a call. */
export interface ReadContent extends ContentSummary {
  /** As `BatchedCall` has them. */
  readonly lengths: readonly number[]
  readonly content: Uint8Array<ArrayBuffer>
}

/** Calls whose content is deleted: those of this user, or of one of its tokens, that began in the period. */
export interface ContentDeletion {
  readonly userId: number
  readonly tokenId: number | undefined
  /** Unix milliseconds; the end does not belong to it. */
  readonly fromMs: number
  readonly toMs: number
}

/** Work of the thread, with its inputs and outputs. */
export interface ContentWork {
  /** Resolves to why content was left out, once for each call of which something was. */
  write(batch: ContentBatch): Promise<readonly DropReason[]>
  /** The summaries of those calls whose content is kept. */
  find(ids: readonly string[]): Promise<readonly ContentSummary[]>
  read(id: string): Promise<ReadContent | undefined>
  /** Resolves to a part as level `redacted` keeps it; to undefined if it cannot be screened. */
  redact(part: Uint8Array): Promise<Uint8Array | undefined>
  /** Resolves to whether anything of it was kept. */
  delete(deletion: ContentDeletion): Promise<boolean>
  /** Removes what is past its retention, and completes deletions that were interrupted. */
  prune(): Promise<{ readonly removedContents: number }>
  /** The users of whom content may be kept. */
  users(): Promise<readonly number[]>
  /** Removes objects that are past their day, or that nothing refers to. Resolves to their number. */
  sweep(): Promise<number>
}

/** A request to the thread. */
export interface ToContentThread {
  readonly number: number
  readonly name: keyof ContentWork | 'close'
  readonly input: unknown
  /** Where content is kept now. */
  readonly place: ContentPlace
}

/** A response of the thread. */
export interface FromContentThread {
  readonly number: number
  readonly output?: unknown
  readonly error?: string
}
