import type { ContentEntry, ContentEntryHead } from './entries.ts'
import type { ContentDeletion } from './messages.ts'

/**
 * The calls whose content a data key encrypts: those of a user that began on a day and expire on the same
 * day.
 */
export interface DataKeyOwner {
  readonly userId: number
  /** The day on which the calls began, counted from 1970-01-01. */
  readonly day: number
  /** The day from which on the key is destroyed, because all content that it encrypts has expired. */
  readonly endDay: number
}

/** A data key as it is stored: encrypted with the secret of the installation. */
export interface StoredDataKey extends DataKeyOwner {
  readonly id: string
  readonly cipher: string
}

/** A stored record of a deletion that was requested. */
export interface DeletionMark extends ContentDeletion {
  readonly id: number
  /** Whether all content that the deletion concerns was removed. */
  readonly isDone: boolean
}

/** Reads and writes within one exclusive transaction: no other process writes entries or keys meanwhile. */
export interface ContentTransaction {
  /** The data keys of these owners, the newest last. */
  keysOf(owners: readonly DataKeyOwner[]): Promise<readonly StoredDataKey[]>
  /** The data keys of a user for calls that began in these days. */
  keysOfUser(userId: number, fromDay: number, toDay: number): Promise<readonly StoredDataKey[]>
  addKeys(keys: readonly StoredDataKey[]): Promise<void>
  /** Destroys keys, so that content encrypted with them can never be read again. */
  removeKeys(ids: readonly string[]): Promise<void>
  append(entries: readonly ContentEntry[]): Promise<void>
  /** The entries that are encrypted with a key, without their content. */
  entriesOfKey(keyId: string): Promise<readonly ContentEntryHead[]>
  /** The encrypted content of an entry. */
  sealedOf(head: ContentEntryHead): Promise<Buffer | undefined>
  /** Replaces an entry's encrypted content, the place where it is stored, and its key. */
  replace(entry: ContentEntry): Promise<void>
  removeEntriesOfKeys(keyIds: readonly string[]): Promise<void>
  marks(): Promise<readonly DeletionMark[]>
  addMark(deletion: ContentDeletion, atMs: number): Promise<number>
  finishMark(id: number): Promise<void>
}

/** A database for content and its data keys: files of the embedded database, or PostgreSQL. */
export interface ContentDatabase {
  /** Text that states where an entry is stored, shown with the call in the usage log. */
  addressOf(head: ContentEntryHead): string
  /**
   * Runs `work` in an exclusive transaction. Once the promise resolves, the transaction is durable; if `work`
   * fails, it is rolled back.
   */
  write<Result>(work: (writer: ContentTransaction) => Promise<Result>): Promise<Result>
  heads(ids: readonly string[]): Promise<readonly ContentEntryHead[]>
  sealedOf(head: ContentEntryHead): Promise<Buffer | undefined>
  keys(ids: readonly string[]): Promise<readonly StoredDataKey[]>
  marks(): Promise<readonly DeletionMark[]>
  /** URLs of the bucket objects with the entries that are removed on this day. */
  objects(dropDay: number): Promise<ReadonlySet<string>>
  /** A random name of this installation, 16 hexadecimal digits. A restored backup gets another one. */
  installation(): Promise<string>
  /** The ids of users who have data keys. */
  users(): Promise<readonly number[]>
  /**
   * Removes files or partitions whose day of removal is `today` or earlier, expired keys, and deletion marks
   * from before `marksMs`. Resolves to the number of removed contents.
   */
  prune(today: number, marksMs: number): Promise<number>
  close(): Promise<void>
}
