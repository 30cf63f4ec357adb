import { removeResponseParts } from '../../store/large-contents.ts'
import type { StoredBytesOfUser } from '../../store/operations/signatures-and-response-parts.ts'
import type { RowStore } from '../../store/store.ts'
import type { FreeSpaceMonitor, StoredDataKind } from './free-space-monitor.ts'

/** Number of rows that one write deletes. It is small, because charges of calls wait for the same commit. */
const DROPPED_AT_A_TIME = 100

/** Services that `StorageLimit` needs. */
interface StorageLimitDependencies {
  readonly rows: Pick<RowStore, 'write'>
  /**
   * Returns the maximum bytes that are stored for one user (`options.keep_bytes`), or in the answer cache.
   */
  readonly maxBytes: () => number
  /** Monitor of the free disk space; undefined if the database server is on another machine. */
  readonly room: Pick<FreeSpaceMonitor, 'hasRoomFor'> | undefined
}

/** Limits the stored content of each user: the oldest entries are deleted to make room for the newest. */
export class StorageLimit {
  readonly #dependencies: StorageLimitDependencies
  /** Users whose oldest entries are being deleted. */
  readonly #dropping = new Set<number>()

  constructor(dependencies: StorageLimitDependencies) {
    this.#dependencies = dependencies
  }

  /** Whether content of this size may be stored at all. */
  admits(kind: StoredDataKind, bytes: number): boolean {
    const { room, maxBytes } = this.#dependencies
    return bytes <= maxBytes() && (room?.hasRoomFor(kind) ?? true)
  }

  /**
   * Deletes the oldest entries of users above the limit. If that fails, the next call of `note` repeats it.
   */
  note(sums: readonly StoredBytesOfUser[]): void {
    for (const { userId, bytes } of sums)
      if (bytes > this.#dependencies.maxBytes() && !this.#dropping.has(userId)) void this.#drop(userId)
  }

  async #drop(userId: number): Promise<void> {
    const { rows, maxBytes } = this.#dependencies
    this.#dropping.add(userId)
    try {
      for (let more = true; more; ) {
        const dropped = await rows.write('removeOldestStoredData', {
          userId,
          maxBytes: maxBytes(),
          limit: DROPPED_AT_A_TIME,
        })
        for (const id of dropped.responseIds) await removeResponseParts(rows, id)
        more = dropped.more
      }
    } catch {
      // The database is unavailable or closed; the next call of `note` tries again.
    } finally {
      this.#dropping.delete(userId)
    }
  }
}
