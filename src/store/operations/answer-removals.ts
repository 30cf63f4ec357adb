import type { KeptFacts, KeptFilter } from '../../domain/kept.ts'
import type { Db } from './operation.ts'

/**
 * Milliseconds for which removals of stored answers are recorded. Answers of calls that take longer are not
 * stored, because a removal could be missed.
 */
const REMOVALS_KEPT_MS = 86_400_000

/** The number of the last committed removal of answers; 0 if there was none. */
export async function lastAnswerRemoval(db: Db): Promise<number> {
  const { last } = await db
    .selectFrom('answer_removals')
    .select((of) => of.fn.max('id').as('last'))
    .executeTakeFirstOrThrow()
  return last ?? 0
}

/**
 * Records a removal, before the matching answers are removed. From then on, answers of calls that began
 * earlier are not stored. Two removals at the same time conflict and one is repeated, so that their numbers
 * are in the order of the commits.
 */
export async function recordAnswerRemoval(
  db: Db,
  { kind, userId, tokenId, model, nowMs }: KeptFilter & { readonly nowMs: number },
): Promise<void> {
  const filter = { user_id: userId ?? null, token_id: tokenId ?? null, model: model ?? null }
  const id = (await lastAnswerRemoval(db)) + 1
  await db
    .insertInto('answer_removals')
    .values({ id, kind, ...filter, removed_ms: nowMs })
    .execute()
}

/**
 * Deletes at most `limit` records of removals that are older than a day, but never the last record; resolves
 * to the number of deleted records.
 */
export async function pruneAnswerRemovals(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const last = await lastAnswerRemoval(db)
  const old = db
    .selectFrom('answer_removals')
    .select('id')
    .where('removed_ms', '<', nowMs - REMOVALS_KEPT_MS)
    .where('id', '<', last)
    .orderBy('id')
    .limit(limit)
  const result = await db.deleteFrom('answer_removals').where('id', 'in', old).executeTakeFirst()
  return Number(result.numDeletedRows)
}

/**
 * Whether a removal that concerns this answer (by its user, API key or model) came after the removal with the number
 * `lastRemoval`, so that the answer must not be stored. Also true if that cannot be known, because records of
 * removals were deleted.
 */
export async function wereRemovedSince(
  db: Db,
  lastRemoval: number,
  { kind, userId, tokenId, model }: KeptFacts,
): Promise<boolean> {
  const later = db.selectFrom('answer_removals').where('id', '>', lastRemoval)
  const { first } = await later.select((of) => of.fn.min('id').as('first')).executeTakeFirstOrThrow()
  if (first === null) return false
  if (first > lastRemoval + 1) return true
  const found = await later
    .select('id')
    .where('kind', '=', kind)
    .where((on) => on.or([on('user_id', 'is', null), on('user_id', '=', userId)]))
    .where((on) => on.or([on('token_id', 'is', null), on('token_id', '=', tokenId)]))
    .where((on) => on.or([on('model', 'is', null), on('model', '=', model)]))
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}
