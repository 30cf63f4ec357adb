import { removeParts } from '../../store/kept-contents.ts'
import type { KeptSum } from '../../store/operations/kept-sums.ts'
import type { Rows } from '../../store/store.ts'
import type { KeepingRoom, KeptKind } from './keeping-room.ts'

/** Rows that one write drops: charges share its commit. */
const DROPPED_AT_A_TIME = 100

/** Services that the bound needs. */
interface KeptBoundParts {
  readonly rows: Pick<Rows, 'write'>
  /** Most bytes that are kept for one user: `options.keep_bytes`. */
  readonly mostBytes: () => number
  /** Undefined where the database is not in this file system. */
  readonly room: Pick<KeepingRoom, 'hasRoomFor'> | undefined
}

/** Bound of what is kept for each user: the oldest makes room for the newest. */
export class KeptBound {
  readonly #parts: KeptBoundParts
  /** Users for whom the oldest is being dropped. */
  readonly #dropping = new Set<number>()

  constructor(parts: KeptBoundParts) {
    this.#parts = parts
  }

  /** Whether a content of so many bytes is kept at all. */
  admits(kind: KeptKind, bytes: number): boolean {
    const { room, mostBytes } = this.#parts
    return bytes <= mostBytes() && (room?.hasRoomFor(kind) ?? true)
  }

  /** Drops the oldest of users whose sums are above the bound; a failure is made up for by the next sum. */
  note(sums: readonly KeptSum[]): void {
    for (const { userId, bytes } of sums)
      if (bytes > this.#parts.mostBytes() && !this.#dropping.has(userId)) void this.#drop(userId)
  }

  async #drop(userId: number): Promise<void> {
    const { rows, mostBytes } = this.#parts
    this.#dropping.add(userId)
    try {
      for (let more = true; more; ) {
        const dropped = await rows.write('dropOldestKept', {
          userId,
          mostBytes: mostBytes(),
          limit: DROPPED_AT_A_TIME,
        })
        for (const id of dropped.responseIds) await removeParts(rows, id)
        more = dropped.more
      }
    } catch {
      // The database is out of reach, or closed.
    } finally {
      this.#dropping.delete(userId)
    }
  }
}
