import type { ReadableTurn } from '@sluice/wire/readable-turns'
import type { BucketCredentials } from '../domain/bucket.ts'
import type { ContentLocation } from '../domain/content-log.ts'
import type { CallKind } from '../domain/endpoints.ts'
import type { ContentBatch } from './batch.ts'
import type { CapturedCall, DropReason } from './content-capture.ts'
import type { Excerpt } from './excerpts.ts'
import type { Secrets } from '../store/secrets.ts'

/** Options with which the content log's thread is started. */
export interface ContentThreadOptions {
  readonly secrets: Secrets
  /** Folder of the embedded database's files; undefined if PostgreSQL is used. */
  readonly folder: string | undefined
  /** URL of the PostgreSQL database; undefined if the embedded one is used. */
  readonly databaseUrl: string | undefined
  /** Credentials for the bucket in which content may be stored; undefined if there are none. */
  readonly bucketKey: BucketCredentials | undefined
  /** Where new content is stored. */
  readonly place: ContentLocation
}

/** Facts about a call's content that are known without decrypting it. */
export interface ContentSummary {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  /** Start of the call in Unix milliseconds. */
  readonly startedMs: number
  readonly what: CapturedCall['what']
  readonly address: string
  readonly sha256: string
  /** Size of all parts of the content together, in bytes. */
  readonly bytes: number
}

/** The content of a call. */
export interface ContentOfCall extends ContentSummary {
  /** Sizes of the parts in bytes, in the order of `CONTENT_PARTS`; −1 for an absent part. */
  readonly lengths: readonly number[]
  readonly content: Uint8Array<ArrayBuffer>
  /** The content as a conversation; undefined if it cannot be read as one. */
  readonly conversation: readonly ReadableTurn[] | undefined
}

/** Which content to delete: that of a user's calls, or of one token's calls, that began in a period. */
export interface ContentDeletion {
  readonly userId: number
  readonly tokenId: number | undefined
  /** Start and end of the period in Unix milliseconds; the end is exclusive. */
  readonly fromMs: number
  readonly toMs: number
}

/** Requests that the thread handles, with their inputs and results. */
export interface ContentRequests {
  /**
   * Stores the content of a batch. Resolves to the reasons why content was left out, one for each call that
   * lacks some.
   */
  write(batch: ContentBatch): Promise<readonly DropReason[]>
  /** The summaries of those calls whose content is kept. */
  find(ids: readonly string[]): Promise<readonly ContentSummary[]>
  /** Reads the content of a call of this endpoint; empty if it is unknown. */
  read(call: { readonly id: string; readonly kind: CallKind }): Promise<ContentOfCall | undefined>
  /**
   * The last place of a call's conversation that has these words, or its first words if none are given;
   * undefined if there is none, or if nothing is kept that can be read as a conversation.
   */
  excerpt(call: {
    readonly id: string
    readonly kind: CallKind
    readonly words: string | undefined
  }): Promise<Excerpt | undefined>
  /**
   * Redacts a part of a call's content as the content level `redacted` does; undefined if it cannot be
   * searched for secrets.
   */
  redact(part: Uint8Array): Promise<Uint8Array | undefined>
  /** Deletes content. Resolves to whether any content was deleted. */
  delete(deletion: ContentDeletion): Promise<boolean>
  /**
   * Removes expired content, and completes deletions that were interrupted. `stuck` is why the bucket prevents one of them
   * once more.
   */
  prune(): Promise<{ readonly removedContents: number; readonly stuck?: string | undefined }>
  /** The ids of users whose content may be kept. */
  users(): Promise<readonly number[]>
  /**
   * Removes bucket objects that are past their day of removal or that no entry refers to. Resolves to their
   * number.
   */
  sweep(): Promise<number>
}

/** Requests that change or end the thread itself. */
export interface ContentThreadRequests extends ContentRequests {
  /** Sets where new content is stored. */
  replacePlace(place: ContentLocation): void
  replaceSecrets(secrets: Secrets): void
  close(): Promise<void>
}
