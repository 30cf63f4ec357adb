import { ownTokens } from '../live-rows.ts'
import type { Db } from './operation.ts'

/** Maximum number of ids in one statement, because databases limit the number of parameters. */
const MAX_IDS = 500

/**
 * Marks the user's live tokens among `tokenIds` as deleted; resolves to their ids. The rows stay, and calls
 * under way continue and are settled.
 */
export async function deleteTokens(
  db: Db,
  {
    userId,
    tokenIds,
    nowSeconds,
  }: { readonly userId: number; readonly tokenIds: readonly number[]; readonly nowSeconds: number },
): Promise<number[]> {
  const asked = new Set(tokenIds)
  const live = await ownTokens(db, userId).select('id').orderBy('id').execute()
  const ids = live.map(({ id }) => id).filter((id) => asked.has(id))
  for (let start = 0; start < ids.length; start += MAX_IDS) {
    await db
      .updateTable('tokens')
      .set({ deleted_time: nowSeconds })
      .where('id', 'in', ids.slice(start, start + MAX_IDS))
      .execute()
  }
  return ids
}
