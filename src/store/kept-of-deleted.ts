import { KEPT_KINDS, type KeptKind, KINDS_OF_OPEN_BATCHES } from '../domain/kept.ts'
import { removeAll } from './kept-store.ts'
import type { RowStore } from './store.ts'

/**
 * Removes all that is kept for a deleted user, with its contents, except what open batches need until they have ended. Rows of
 * responses that providers have stay, because a background call may have to be charged by one.
 */
export async function removeKeptOfUser(
  rows: Pick<RowStore, 'read' | 'write'>,
  userId: number,
): Promise<void> {
  const batches = await rows.read('keysOfKind', { kind: 'batch_open' })
  const open = batches.filter((batch) => batch.userId === userId).map(({ key }) => key)
  // Objects are not in the database: their rows say which are still to be removed.
  for (const kind of Object.keys(KEPT_KINDS) as KeptKind[])
    if (kind !== 'incomplete_objects' && !KINDS_OF_OPEN_BATCHES.has(kind))
      await removeAll(rows, { kind, userId, ...(kind === 'batch' && { except: open }) })
  // What stays is removed by another call.
  if (open.length === 0) await rows.write('removeKeptSums', { userId })
}

/** Removes what is kept for deleted users whose removal was interrupted. Resolves to the number of these users. */
export async function pruneKeptOfDeleted(
  rows: Pick<RowStore, 'read' | 'write'>,
  signal?: AbortSignal,
): Promise<number> {
  let users = 0
  for (const userId of await rows.read('deletedUsersWithKeptData')) {
    if (signal?.aborted) break
    await removeKeptOfUser(rows, userId)
    users += 1
  }
  return users
}
