import { randomUUIDv7 } from 'node:crypto'
import type { KeptEntry } from '../../domain/kept.ts'
import { GatewayError } from '../../errors.ts'
import type { KeptStore } from '../../store/kept-store.ts'
import type { EntryToKeep } from '../../store/operations/kept.ts'

/** Maximum size of a file, in bytes. */
export const MAX_FILE_BYTES = 209_715_200

/** Why a file exists: a client uploaded it, or a batch made it. */
export type FilePurpose = 'batch' | 'batch_output'

/** What is known of a file apart from its content, as it is stored. */
interface FileFacts {
  readonly filename: string
  readonly purpose: FilePurpose
}

/** A file of a user. */
export interface StoredFile extends FileFacts {
  readonly id: string
  readonly bytes: number
  readonly entry: KeptEntry
}

/** A file that is to be stored. */
interface NewFile extends FileFacts {
  readonly id: string
  readonly userId: number
  readonly createdMs: number
  readonly expiresMs: number
}

/** Which files of a user are listed. */
export interface FilePage {
  readonly userId: number
  readonly purpose: string | undefined
  /** The id after which the page begins. */
  readonly after: string | undefined
  readonly order: 'asc' | 'desc'
  readonly limit: number
}

/** Returns an id for a file. Ids sort by the time at which they were made. */
export function newFileId(): string {
  return `file-${randomUUIDv7().replaceAll('-', '')}`
}

/** The files of users, encrypted, in the database that all nodes share. Each belongs to one user, who alone finds it. */
export class FileStore {
  readonly #kept: KeptStore

  constructor(kept: KeptStore) {
    this.#kept = kept
  }

  /** Resolves when the file is stored; until then it is not found. Rejects with `files_full` or `storage_unavailable`. */
  async store(file: NewFile & { readonly bytes: number }, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    if (!this.#kept.admits('file', file.bytes) || !(await this.#kept.write(entryOf(file), pieces)))
      throw noRoom()
  }

  /** Stores a result, for which there is always room. Resolves to false if the user was deleted. */
  storeResult(file: NewFile, pieces: AsyncIterable<Uint8Array>): Promise<boolean> {
    return this.#kept.write(entryOf(file), pieces, 'always')
  }

  async find(userId: number, id: string): Promise<StoredFile> {
    const entry = await this.#kept.find('file', id, userId)
    if (!entry) throw new GatewayError('not_found', 'there is no file with this id')
    return fileOf(entry)
  }

  content({ entry }: StoredFile): AsyncGenerator<Buffer, void, undefined> {
    return this.#kept.stream(entry)
  }

  /** Resolves to at most `limit` files, and whether there are more. */
  async list({ purpose, after, limit, ...page }: FilePage): Promise<{
    readonly files: readonly StoredFile[]
    readonly hasMore: boolean
  }> {
    const files: StoredFile[] = []
    for (let last = after, read = limit + 1; files.length <= limit && read === limit + 1; ) {
      const entries = await this.#kept.list({ kind: 'file', ...page, after: last, limit: limit + 1 })
      read = entries.length
      last = entries.at(-1)?.key
      files.push(...entries.map(fileOf).filter((file) => purpose === undefined || file.purpose === purpose))
    }
    return { files: files.slice(0, limit), hasMore: files.length > limit }
  }

  /** Bytes that the files of a user have. */
  bytesOf(userId: number): Promise<number> {
    return this.#kept.bytesOf('files', userId)
  }

  /** Resolves to false if there is no such file. */
  async remove(userId: number, id: string): Promise<boolean> {
    return (await this.#kept.remove({ kind: 'file', key: id, userId })) > 0
  }
}

function entryOf({ id: key, userId, createdMs, expiresMs, filename, purpose }: NewFile): EntryToKeep {
  const facts = JSON.stringify({ filename, purpose } satisfies FileFacts)
  return { kind: 'file', key, userId, tokenId: 0, model: '', facts, createdMs, expiresMs }
}

function fileOf(entry: KeptEntry): StoredFile {
  return { ...(JSON.parse(entry.facts) as FileFacts), id: entry.key, bytes: entry.bytes, entry }
}

function noRoom(): GatewayError {
  return new GatewayError('storage_unavailable', 'there is no room for files at the moment; try again', {
    retryAfter: 60,
  })
}
