import {
  type AnswerHead,
  type AnswerKind,
  dayOf,
  type KeptAnswer,
  SHARED_ANSWERS_OWNER,
  type RemovalFilter,
} from '../../domain/kept-answer.ts'
import { type Secrets, seal, unseal, unsealBytes, type SealContext } from '../secrets.ts'
import type { Db } from './operation.ts'
import {
  STORED_ANSWER_BYTES_SQL,
  countedAnswers,
  type AnswerPartsLocation,
  MAX_REMOVED_PARTS,
  removePartsOfAnswers as removeResponseParts,
  type StoredBytesOfUser,
  updateStoredBytes,
} from './signatures-and-response-parts.ts'

/**
 * Milliseconds for which removals of stored answers are recorded. Answers of calls that take longer are not
 * stored, because a removal could be missed.
 */
const REMOVALS_KEPT_MS = 86_400_000

/** Position of a part of an answer. `part` counts from 0. */
interface AnswerPart {
  readonly day: number
  readonly answerId: string
  readonly part: number
}

/**
 * Stores a part of an answer's content, encrypted so that it can be decrypted only for this position. The row
 * of the answer is stored after its parts.
 */
export async function storeAnswerPart(
  db: Db,
  { bytes, ...place }: AnswerPart & { readonly userId: number; readonly bytes: Uint8Array },
  secrets: Secrets,
): Promise<void> {
  const { day, answerId, part } = place
  const content_cipher = seal(secrets, bytes, answerPartContext(place))
  await db
    .insertInto('answer_parts')
    .values({ day, answer_id: answerId, part, content_cipher })
    .onConflict((on) => on.columns(['day', 'answer_id', 'part']).doUpdateSet({ content_cipher }))
    .execute()
}

/**
 * Stores the row of an answer, and also its content if that fits into one part. An earlier answer with the
 * same lookup is replaced together with its parts. Nothing is stored, and parts that were stored before are
 * removed, if the user was deleted or if answers like this one were removed after the removal with the number
 * `lastRemoval`. Resolves to the bytes that are now stored for the owner.
 */
export async function storeAnswer(
  db: Db,
  {
    content,
    lastRemoval,
    ...answer
  }: KeptAnswer & { readonly content: Uint8Array | undefined; readonly lastRemoval?: number | undefined },
  secrets: Secrets,
): Promise<StoredBytesOfUser | undefined> {
  const { kind, lookup, answerId, head, facts } = answer
  const day = dayOf(answer.expiresMs)
  const isRemoved = lastRemoval !== undefined && (await wasRemovedSince(db, lastRemoval, answer))
  if (isRemoved || (await isDeleted(db, answer.userId))) {
    await removeResponseParts(db, [{ day, answerId }])
    return undefined
  }
  const removed = await rowsFoundBy(db, kind, lookup)
  await removeResponseParts(db, removed.map(placeOf))
  if (content)
    await storeAnswerPart(db, { userId: answer.userId, day, answerId, part: 0, bytes: content }, secrets)
  const values = {
    answer_id: answerId,
    owner_id: ownerOf(answer),
    user_id: answer.userId,
    token_id: answer.tokenId,
    model: answer.model,
    head_cipher: seal(secrets, JSON.stringify({ head, facts }), answerRowContext(answer)),
    parts: answer.parts,
    bytes: answer.bytes,
    created_ms: answer.createdMs,
    expires_ms: answer.expiresMs,
  }
  await db
    .insertInto('kept_answers')
    .values({ kind, lookup, ...values })
    .onConflict((on) => on.columns(['kind', 'lookup']).doUpdateSet(values))
    .execute()
  const sums = await updateStoredBytes(db, {
    written: countedAnswers(await rowsFoundBy(db, kind, lookup)),
    removed: countedAnswers(removed),
  })
  return sums.find(({ userId }) => userId === values.owner_id)
}

/** Finds an answer without its content; null if there is none or it was encrypted with another secret. */
export async function findAnswer(
  db: Db,
  { kind, lookup, nowMs }: { readonly kind: AnswerKind; readonly lookup: string; readonly nowMs: number },
  secrets: Secrets,
): Promise<KeptAnswer | null> {
  const row = await db
    .selectFrom('kept_answers')
    .selectAll()
    .where('kind', '=', kind)
    .where('lookup', '=', lookup)
    .where('expires_ms', '>', nowMs)
    .executeTakeFirst()
  if (!row) return null
  const { answer_id: answerId, parts, bytes } = row
  const sealed = headOf(row.head_cipher, answerRowContext({ kind, lookup, answerId, parts, bytes }), secrets)
  if (!sealed) return null
  return {
    kind,
    lookup,
    answerId,
    userId: row.user_id,
    tokenId: row.token_id,
    model: row.model,
    ...sealed,
    parts,
    bytes,
    createdMs: row.created_ms,
    expiresMs: row.expires_ms,
  }
}

/** Reads a part of an answer's content; null if it was removed or cannot be decrypted. */
export async function readAnswerPart(
  db: Db,
  place: AnswerPart,
  secrets: Secrets,
): Promise<Uint8Array | null> {
  const row = await db
    .selectFrom('answer_parts')
    .select('content_cipher')
    .where('day', '=', place.day)
    .where('answer_id', '=', place.answerId)
    .where('part', '=', place.part)
    .executeTakeFirst()
  if (!row) return null
  try {
    return unsealBytes(secrets, row.content_cipher, answerPartContext(place))
  } catch {
    return null
  }
}

/** Filter for the answers to remove: an answer must match all values that are given. */
interface AnswerFilter extends RemovalFilter {
  readonly lookup?: string | undefined
}

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
  { kind, userId, tokenId, model, nowMs }: RemovalFilter & { readonly nowMs: number },
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
 * Whether a removal that concerns this answer (by its user, key or model) came after the removal with the number
 * `lastRemoval`, so that the answer must not be stored. Also true if that cannot be known, because records of
 * removals were deleted.
 */
async function wasRemovedSince(
  db: Db,
  lastRemoval: number,
  { kind, userId, tokenId, model }: KeptAnswer,
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

/**
 * Removes at most `limit` answers, with at most `MAX_REMOVED_PARTS` parts in total. Resolves to the number of removed
 * answers.
 */
export async function removeAnswers(
  db: Db,
  { kind, userId, tokenId, model, lookup, limit }: AnswerFilter & { readonly limit: number },
): Promise<number> {
  let chosen = answerRows(db).where('kind', '=', kind)
  if (userId !== undefined) chosen = chosen.where('user_id', '=', userId)
  if (tokenId !== undefined) chosen = chosen.where('token_id', '=', tokenId)
  if (model !== undefined) chosen = chosen.where('model', '=', model)
  if (lookup !== undefined) chosen = chosen.where('lookup', '=', lookup)
  return removeRows(db, await chosen.limit(limit).execute())
}

/**
 * Removes at most `limit` expired answers, with at most `MAX_REMOVED_PARTS` parts in total. Resolves to the number of
 * answers.
 */
export async function pruneAnswers(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  return removeRows(db, await answerRows(db).where('expires_ms', '<=', nowMs).limit(limit).execute())
}

/**
 * Removes at most `limit` parts of answers, those that belong to a day that is over. Resolves to the number
 * of removed parts.
 */
export async function pruneAnswerParts(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const over = db.selectFrom('answer_parts').select(['day', 'answer_id', 'part'])
  const result = await db
    .deleteFrom('answer_parts')
    .where((eb) =>
      eb(
        eb.refTuple('day', 'answer_id', 'part'),
        'in',
        over.where('day', '<', dayOf(nowMs)).limit(limit).$asTuple('day', 'answer_id', 'part'),
      ),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

/** Removes the parts of an answer, unless the row of the answer was stored. */
export async function removeAnswerParts(
  db: Db,
  { kind, lookup, ...place }: AnswerPartsLocation & { readonly kind: AnswerKind; readonly lookup: string },
): Promise<void> {
  const [row] = await rowsFoundBy(db, kind, lookup)
  if (row?.answer_id !== place.answerId) await removeResponseParts(db, [place])
}

type AnswerRow = Awaited<ReturnType<typeof rowsFoundBy>>[number]

function answerRows(db: Db) {
  return db
    .selectFrom('kept_answers')
    .select([
      'kind',
      'lookup',
      'answer_id',
      'expires_ms',
      'parts',
      'owner_id as user_id',
      'user_id as holder_id',
    ])
    .select(STORED_ANSWER_BYTES_SQL.as('bytes'))
}

function rowsFoundBy(db: Db, kind: AnswerKind, lookup: string) {
  return answerRows(db).where('kind', '=', kind).where('lookup', '=', lookup).execute()
}

/**
 * Removes the first of these answers, as many as have at most `MAX_REMOVED_PARTS` parts in total. Resolves to the
 * number of removed answers.
 */
async function removeRows(db: Db, rows: readonly AnswerRow[]): Promise<number> {
  let parts = 0
  const first = rows.filter((row, index) => (parts += row.parts) <= MAX_REMOVED_PARTS || index === 0)
  await removeAll(db, first)
  return first.length
}

async function removeAll(db: Db, removed: readonly AnswerRow[]): Promise<void> {
  for (const { kind, lookup } of removed)
    await db.deleteFrom('kept_answers').where('kind', '=', kind).where('lookup', '=', lookup).execute()
  await removeResponseParts(db, removed.map(placeOf))
  await updateStoredBytes(db, { removed: countedAnswers(removed) })
}

function placeOf({ answer_id: answerId, expires_ms: expiresMs }: AnswerRow): AnswerPartsLocation {
  return { day: dayOf(expiresMs), answerId }
}

function ownerOf({ kind, userId }: Pick<KeptAnswer, 'kind' | 'userId'>): number {
  return kind === 'cache' ? SHARED_ANSWERS_OWNER : userId
}

async function isDeleted(db: Db, userId: number): Promise<boolean> {
  const query = db.selectFrom('users').select('id').where('id', '=', userId)
  return (await query.where('deleted_time', 'is not', null).executeTakeFirst()) !== undefined
}

function headOf(
  cipher: string,
  context: SealContext,
  secrets: Secrets,
): { readonly head: AnswerHead; readonly facts: string } | undefined {
  try {
    return JSON.parse(unseal(secrets, cipher, context)) as { head: AnswerHead; facts: string }
  } catch {
    return undefined
  }
}

/** The context identifies the content of the row, so that a row with the content of another row is not accepted. */
export function answerRowContext({
  kind,
  lookup,
  answerId,
  parts,
  bytes,
}: Pick<KeptAnswer, 'lookup' | 'answerId' | 'parts' | 'bytes'> & { readonly kind: string }): SealContext {
  return { table: 'kept_answers', row: `${kind} ${lookup} ${answerId} ${parts} ${bytes}` }
}

/** The position of a part, which is the context of its encrypted bytes. */
export function answerPartContext({ day, answerId, part }: AnswerPart): SealContext {
  return { table: 'answer_parts', row: `${day} ${answerId} ${part}` }
}
