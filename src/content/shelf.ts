import type { ContentEntry, EntryHead } from './entries.ts'
import type { ContentDeletion } from './messages.ts'

/** Whom a data key belongs to. */
export interface KeyOwner {
  readonly userId: number
  /** Day since 1970 on which the calls began. */
  readonly day: number
  /** First day on which the key is destroyed, because what it opens is past its retention. */
  readonly endDay: number
}

/** A data key as it is stored: sealed with the secret of the installation. */
export interface StoredKey extends KeyOwner {
  readonly id: string
  readonly cipher: string
}

/** A deletion that was requested. */
export interface DeletionMark extends ContentDeletion {
  readonly id: number
  /** Whether everything it concerns was removed. */
  readonly isDone: boolean
}

/** Exclusive work on the shelf: no other process writes entries or keys meanwhile. */
export interface ShelfWriter {
  /** Keys of these owners, the newest last. */
  keysOf(owners: readonly KeyOwner[]): Promise<readonly StoredKey[]>
  /** Keys of a user for calls of these days. */
  keysOfUser(userId: number, fromDay: number, toDay: number): Promise<readonly StoredKey[]>
  addKeys(keys: readonly StoredKey[]): Promise<void>
  /** Destroys keys, so that nothing that they open can be read any more. */
  removeKeys(ids: readonly string[]): Promise<void>
  append(entries: readonly ContentEntry[]): Promise<void>
  /** Heads of the entries of a key. */
  entriesOfKey(keyId: string): Promise<readonly EntryHead[]>
  /** The encrypted content of an entry. */
  sealedOf(head: EntryHead): Promise<Buffer | undefined>
  /** Replaces the encrypted content of an entry, its place and its key. */
  replace(entry: ContentEntry): Promise<void>
  removeEntriesOfKeys(keyIds: readonly string[]): Promise<void>
  marks(): Promise<readonly DeletionMark[]>
  addMark(deletion: ContentDeletion, atMs: number): Promise<number>
  finishMark(id: number): Promise<void>
}

/** Where entries and keys are: files of the embedded database, or PostgreSQL. */
export interface Shelf {
  /** Address of an entry, for the row of its call. */
  addressOf(head: EntryHead): string
  /** Runs exclusive work, which is durable when this resolves; a failure undoes it. */
  write<Result>(work: (writer: ShelfWriter) => Promise<Result>): Promise<Result>
  heads(ids: readonly string[]): Promise<readonly EntryHead[]>
  sealedOf(head: EntryHead): Promise<Buffer | undefined>
  keys(ids: readonly string[]): Promise<readonly StoredKey[]>
  marks(): Promise<readonly DeletionMark[]>
  /** The objects in which entries are that are removed on a day. */
  objects(dropDay: number): Promise<ReadonlySet<string>>
  /** A random name of this installation, which its copies do not have: 16 hex digits. */
  installation(): Promise<string>
  /** The users of whom there are keys. */
  users(): Promise<readonly number[]>
  /** Removes files or partitions whose day has come, keys past their end, and marks of before `marksMs`. */
  prune(today: number, marksMs: number): Promise<number>
  close(): Promise<void>
}
