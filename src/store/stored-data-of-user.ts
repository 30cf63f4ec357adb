import { ANSWER_KINDS } from '../domain/kept-answer.ts'
import { removeResponseParts } from './large-contents.ts'
import type { RowStore } from './store.ts'

/** Rows that one write removes. They are few, because charges of calls wait for the same commit. */
const REMOVED_AT_A_TIME = 20

/**
 * Removes what is kept for a deleted user: responses, signatures and answers, with their contents. Responses without
 * content stay, because a background call may have to be charged by one.
 */
export async function removeStoredDataOfUser(rows: Pick<RowStore, 'write'>, userId: number): Promise<void> {
  for (const kind of ANSWER_KINDS)
    while ((await rows.write('removeAnswers', { kind, userId, limit: REMOVED_AT_A_TIME })) > 0);
  for (let more = true; more; ) {
    const dropped = await rows.write('removeOldestStoredData', {
      userId,
      // A negative maximum removes everything, even if the total size of the data is wrong.
      maxBytes: -Number.MAX_SAFE_INTEGER,
      limit: REMOVED_AT_A_TIME,
    })
    for (const id of dropped.responseIds) await removeResponseParts(rows, id)
    more = dropped.more
  }
  await rows.write('removeStoredBytesSum', { userId })
}

/**
 * Removes what is kept for deleted users whose removal was interrupted. Resolves to the number of these
 * users.
 */
export async function pruneStoredDataOfDeleted(
  rows: Pick<RowStore, 'read' | 'write'>,
  signal?: AbortSignal,
): Promise<number> {
  let users = 0
  for (const userId of await rows.read('deletedUsersWithStoredData')) {
    if (signal?.aborted) break
    await removeStoredDataOfUser(rows, userId)
    users += 1
  }
  return users
}
