import { sql } from 'kysely'
import { dayOf, SHARED_ANSWERS_OWNER } from '../../domain/kept-answer.ts'
import type { StoredSignature } from '../../domain/stored-response.ts'
import { type Secrets, seal, unseal, type SealContext } from '../secrets.ts'
import { type Db, inChunks } from './operation.ts'

/** Name of the table, part of the context in which its values are encrypted. */
const TABLE = 'kept_signatures'
/**
 * Maximum number of rows in a statement and of hashes in a query, because databases limit the number of
 * parameters.
 */
const MAX_ROWS = 1_000

/** Reasoning signatures from one reply, to be stored for the user. */
export interface UserSignatures {
  readonly userId: number
  readonly signatures: readonly StoredSignature[]
  /** Time of the reply in Unix milliseconds. */
  readonly storedMs: number
  readonly expiresMs: number
}

/**
 * Stores signatures, each encrypted so that it can be decrypted only for its row. Replaces those with the
 * same hash. Resolves to the number of bytes now stored for each user.
 */
export async function storeSignatures(
  db: Db,
  { replies }: { readonly replies: readonly UserSignatures[] },
  secrets: Secrets,
): Promise<StoredBytesOfUser[]> {
  const rows = new Map(
    replies.flatMap(({ userId, signatures, storedMs, expiresMs }) =>
      signatures.map(({ hash, content }) => {
        const row = {
          user_id: userId,
          hash,
          content_cipher: seal(secrets, content, { table: TABLE, row: hash }),
          kept_ms: storedMs,
          expires_ms: expiresMs,
        }
        return [`${userId} ${hash}`, row] as const
      }),
    ),
  )
  const all = [...rows.values()]
  const removed = await presentRows(db, all)
  const insert = (some: readonly (typeof all)[number][]) =>
    db
      .insertInto('kept_signatures')
      .values(some)
      .onConflict((conflict) =>
        conflict.columns(['user_id', 'hash']).doUpdateSet((excluded) => ({
          content_cipher: excluded.ref('excluded.content_cipher'),
          kept_ms: excluded.ref('excluded.kept_ms'),
          expires_ms: excluded.ref('excluded.expires_ms'),
        })),
      )
      .execute()
  await inChunks(all, insert, MAX_ROWS)
  const written = all.map((row) => ({ user_id: row.user_id, bytes: signatureBytes(row.content_cipher) }))
  return updateStoredBytes(db, { written, removed })
}

/** Reads the stored signatures that are about to be replaced. */
async function presentRows(
  db: Db,
  rows: readonly { readonly user_id: number; readonly hash: string }[],
): Promise<{ user_id: number; bytes: number }[]> {
  const present: { user_id: number; bytes: number }[] = []
  for (const [userId, ofUser] of Map.groupBy(rows, ({ user_id: id }) => id)) {
    const hashes = ofUser.map(({ hash }) => hash)
    const select = (some: readonly string[]) =>
      db
        .selectFrom('kept_signatures')
        .select(['user_id', SIGNATURE_BYTES.as('bytes')])
        .where('user_id', '=', userId)
        .where('hash', 'in', some)
        .execute()
    present.push(...(await inChunks(hashes, select, MAX_ROWS)))
  }
  return present
}

/**
 * Finds signatures of a user by their hashes, in any order. Leaves out rows that cannot be decrypted because
 * they were changed, moved or encrypted with another secret.
 */
export async function findSignatures(
  db: Db,
  {
    userId,
    hashes,
    nowMs,
  }: { readonly userId: number; readonly hashes: readonly string[]; readonly nowMs: number },
  secrets: Secrets,
): Promise<(StoredSignature & { readonly expiresMs: number })[]> {
  const select = (some: readonly string[]) =>
    db
      .selectFrom('kept_signatures')
      .select(['hash', 'content_cipher', 'expires_ms as expiresMs'])
      .where('user_id', '=', userId)
      .where('hash', 'in', some)
      .where('expires_ms', '>', nowMs)
      .execute()
  return (await inChunks(hashes, select, MAX_ROWS)).flatMap(({ hash, content_cipher, expiresMs }) => {
    const content = contentOf(content_cipher, hash, secrets)
    return content === undefined ? [] : [{ hash, content, expiresMs }]
  })
}

/** Removes at most `limit` expired signatures; resolves to their number. */
export async function pruneSignatures(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const removed = await db
    .deleteFrom('kept_signatures')
    .where((eb) =>
      eb(
        eb.refTuple('user_id', 'hash'),
        'in',
        eb
          .selectFrom('kept_signatures')
          .select(['user_id', 'hash'])
          .where('expires_ms', '<=', nowMs)
          .limit(limit)
          .$asTuple('user_id', 'hash'),
      ),
    )
    .returning(['user_id', SIGNATURE_BYTES.as('bytes')])
    .execute()
  await updateStoredBytes(db, { removed })
  return removed.length
}

function contentOf(cipher: string, hash: string, secrets: Secrets): string | undefined {
  try {
    return unseal(secrets, cipher, { table: TABLE, row: hash })
  } catch {
    return undefined
  }
}

/** Number of bytes counted for a row (its ids, other columns and indexes) in addition to its content. */
const ROW_BYTES = 512

/**
 * SQL for the number of bytes counted for a response; null if the database has no content of it, because the
 * provider stores it.
 */
export const STORED_RESPONSE_BYTES_SQL = sql<number | null>`kept_bytes + ${sql.lit(ROW_BYTES)}`

/** SQL for the number of bytes counted for a signature. */
const SIGNATURE_BYTES = sql<number>`octet_length(content_cipher) + ${sql.lit(ROW_BYTES)}`

/** SQL for the number of bytes counted for a stored answer. */
export const STORED_ANSWER_BYTES_SQL = sql<number>`bytes + ${sql.lit(ROW_BYTES)}`

/**
 * Number of bytes counted for a signature that is about to be written. Its encrypted content is ASCII, so its
 * length equals its bytes.
 */
function signatureBytes(cipher: string): number {
  return cipher.length + ROW_BYTES
}

/** Number of bytes stored for a user. */
export interface StoredBytesOfUser {
  readonly userId: number
  readonly bytes: number
}

/**
 * A row that was written or removed, and the number of bytes counted for it; null if the row is not counted.
 */
interface CountedRow {
  readonly user_id: number
  readonly bytes: number | null
}

/** A row of an answer, by the row of `kept_sums` to which it belongs (`user_id`), and its user (`holder_id`). */
interface CountedAnswer extends CountedRow {
  readonly holder_id: number
}

/**
 * The rows of answers as they are counted. Bytes of the answer cache are counted twice: together, and for the user
 * who made the call, in the row with the negative of the user's id.
 */
export function countedAnswers(answers: readonly CountedAnswer[]): CountedRow[] {
  return answers.flatMap((answer) =>
    answer.user_id === SHARED_ANSWERS_OWNER
      ? [answer, { user_id: -answer.holder_id, bytes: answer.bytes }]
      : [answer],
  )
}

/**
 * Updates the number of bytes stored for each user, in the transaction that wrote or removed the rows.
 * Resolves to the new numbers.
 */
export async function updateStoredBytes(
  db: Db,
  {
    written = [],
    removed = [],
  }: { readonly written?: readonly CountedRow[]; readonly removed?: readonly CountedRow[] },
): Promise<StoredBytesOfUser[]> {
  const changes = new Map<number, number>()
  const add = (userId: number, bytes: number): void =>
    void changes.set(userId, (changes.get(userId) ?? 0) + bytes)
  for (const { user_id: userId, bytes } of written) if (bytes !== null) add(userId, bytes)
  for (const { user_id: userId, bytes } of removed) if (bytes !== null) add(userId, -bytes)
  const sums: StoredBytesOfUser[] = []
  // Rows are locked in the order of their ids, so that transactions cannot deadlock.
  for (const [userId, change] of [...changes].toSorted(([a], [b]) => a - b)) {
    const { bytes } = await db
      .insertInto('kept_sums')
      .values({ user_id: userId, bytes: change })
      .onConflict((on) => on.column('user_id').doUpdateSet({ bytes: sql`kept_sums.bytes + excluded.bytes` }))
      .returning('bytes')
      .executeTakeFirstOrThrow()
    sums.push({ userId, bytes })
  }
  return sums
}

/** Where the parts of an answer are stored. */
export interface AnswerPartsLocation {
  readonly day: number
  readonly answerId: string
}

/**
 * Maximum number of answer parts that one write removes; exceeded only for a single answer with more parts.
 * The maximum is small, because charges of calls wait for the same commit.
 */
export const MAX_REMOVED_PARTS = 32

/** Removes the parts of answers. Call it in the transaction that removes their rows. */
export async function removePartsOfAnswers(db: Db, answers: readonly AnswerPartsLocation[]): Promise<void> {
  for (const { day, answerId } of answers)
    await db.deleteFrom('answer_parts').where('day', '=', day).where('answer_id', '=', answerId).execute()
}

/** What `removeOldestStored` removed, and whether there is more to remove. */
interface DroppedRows {
  /** Ids of removed responses, whose parts can be removed now. */
  readonly responseIds: readonly string[]
  /** Whether the user still has more bytes stored than the maximum. */
  readonly more: boolean
}

/**
 * Removes the oldest data stored for a user, at most `limit` rows, until at most `maxBytes` are left.
 * Responses, signatures and answers are removed in the order of their age, whatever their kind. Of the answer
 * cache, the answers of a user who has more than half of it are removed first.
 */
export async function removeOldestStoredData(
  db: Db,
  { userId, maxBytes, limit }: { readonly userId: number; readonly maxBytes: number; readonly limit: number },
): Promise<DroppedRows> {
  const sum = await db
    .selectFrom('kept_sums')
    .select('bytes')
    .where('user_id', '=', userId)
    .executeTakeFirst()
  let excess = (sum?.bytes ?? 0) - maxBytes
  if (excess <= 0) return { responseIds: [], more: false }
  const holder = userId === SHARED_ANSWERS_OWNER ? await holderOfMostAnswers(db, maxBytes / 2) : undefined
  const oldest = await oldestRows(db, userId, limit, holder)
  const dropped = []
  let parts = 0
  for (const row of oldest) {
    parts += row.answer?.parts ?? 0
    if (excess <= 0 || (parts > MAX_REMOVED_PARTS && dropped.length > 0)) break
    dropped.push(row)
    excess -= row.bytes ?? 0
  }
  const responseIds = dropped.flatMap(({ id }) => id ?? [])
  const hashes = dropped.flatMap(({ hash }) => hash ?? [])
  if (responseIds.length > 0) await db.deleteFrom('stored_responses').where('id', 'in', responseIds).execute()
  if (hashes.length > 0)
    await db.deleteFrom('kept_signatures').where('user_id', '=', userId).where('hash', 'in', hashes).execute()
  const answers = dropped.flatMap(({ answer }) => answer ?? [])
  for (const { kind, lookup } of answers)
    await db.deleteFrom('kept_answers').where('kind', '=', kind).where('lookup', '=', lookup).execute()
  await removePartsOfAnswers(db, answers)
  await updateStoredBytes(db, { removed: countedAnswers(dropped) })
  return { responseIds, more: excess > 0 && dropped.length > 0 }
}

/**
 * Lists deleted users with stored data. `deleteUser` keeps the row with the user's stored bytes, which is
 * removed after the data.
 */
export async function deletedUsersWithStoredData(db: Db): Promise<number[]> {
  const rows = await db
    .selectFrom('users')
    .innerJoin('kept_sums', 'kept_sums.user_id', 'users.id')
    .select('users.id')
    .where('users.deleted_time', 'is not', null)
    .execute()
  return rows.map(({ id }) => id)
}

/** Removes the row with the stored bytes of a deleted user, when the data is removed. */
export async function removeStoredBytesSum(db: Db, { userId }: { readonly userId: number }): Promise<void> {
  await db.deleteFrom('kept_sums').where('user_id', 'in', [userId, -userId]).execute()
}

/** Id of the user with the most bytes in the answer cache; undefined if no user has more than `bytes`. */
async function holderOfMostAnswers(db: Db, bytes: number): Promise<number | undefined> {
  const sums = db.selectFrom('kept_sums').select('user_id').where('user_id', '<', SHARED_ANSWERS_OWNER)
  const most = await sums.where('bytes', '>', bytes).orderBy('bytes', 'desc').limit(1).executeTakeFirst()
  return most && -most.user_id
}

/**
 * Reads the oldest responses, signatures and answers of a user, from oldest to newest; with `holder`, only answers
 * of calls of that user.
 */
async function oldestRows(db: Db, userId: number, limit: number, holder: number | undefined) {
  const responses = await db
    .selectFrom('stored_responses')
    .select(['id', 'user_id', 'created_ms as storedMs', STORED_RESPONSE_BYTES_SQL.as('bytes')])
    .where('user_id', '=', userId)
    .where('content_cipher', 'is not', null)
    .orderBy('created_ms')
    .limit(limit)
    .execute()
  const signatures = await db
    .selectFrom('kept_signatures')
    .select(['hash', 'user_id', 'kept_ms as storedMs', SIGNATURE_BYTES.as('bytes')])
    .where('user_id', '=', userId)
    .orderBy('kept_ms')
    .limit(limit)
    .execute()
  const held = db.selectFrom('kept_answers').where('owner_id', '=', userId)
  const answers = await (holder === undefined ? held : held.where('user_id', '=', holder))
    .select([
      'user_id',
      'kind',
      'lookup',
      'answer_id',
      'expires_ms',
      'created_ms',
      'parts',
      STORED_ANSWER_BYTES_SQL.as('bytes'),
    ])
    .orderBy('created_ms')
    .limit(limit)
    .execute()
  const rows: readonly {
    readonly id?: string
    readonly hash?: string
    readonly answer?: AnswerPartsLocation & {
      readonly kind: string
      readonly lookup: string
      readonly parts: number
    }
    readonly user_id: number
    readonly holder_id: number
    readonly storedMs: number
    readonly bytes: number | null
  }[] = [
    ...[...responses, ...signatures].map((row) => ({ ...row, holder_id: row.user_id })),
    ...answers.map(
      ({ user_id, kind, lookup, answer_id: answerId, expires_ms: expiresMs, created_ms, parts, bytes }) => ({
        answer: { kind, lookup, answerId, day: dayOf(expiresMs), parts },
        user_id: userId,
        holder_id: user_id,
        storedMs: created_ms,
        bytes,
      }),
    ),
  ]
  return rows.toSorted((a, b) => a.storedMs - b.storedMs).slice(0, limit)
}

/** One part of the content of a large response. */
interface ResponsePart {
  readonly responseId: string
  /** Index of the part, from 0: first the parts of the input, then those of the response. */
  readonly part: number
  readonly text: string
  readonly createdMs: number
}

/**
 * Stores a part, encrypted so that it can be decrypted only for this position, before the row of its response
 * is stored. Replaces a part that was stored before, for example by a write that was repeated.
 */
export async function storeResponsePart(
  db: Db,
  { responseId, part, text, createdMs }: ResponsePart,
  secrets: Secrets,
): Promise<void> {
  const values = {
    created_ms: createdMs,
    content_cipher: seal(secrets, text, responsePartContext(responseId, part)),
  }
  await db
    .insertInto('response_parts')
    .values({ response_id: responseId, part, ...values })
    .onConflict((conflict) => conflict.columns(['response_id', 'part']).doUpdateSet(values))
    .execute()
}

/** Reads a part of a response's content; undefined if it is missing. */
export async function responsePart(
  db: Db,
  { responseId, part }: Pick<ResponsePart, 'responseId' | 'part'>,
  secrets: Secrets,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('response_parts')
    .select('content_cipher')
    .where('response_id', '=', responseId)
    .where('part', '=', part)
    .executeTakeFirst()
  return row && unseal(secrets, row.content_cipher, responsePartContext(responseId, part))
}

/**
 * Lists responses that have parts but no row: they were removed, or the gateway stopped before it wrote the
 * row. This is a read operation, because it searches all large contents and would delay writes.
 */
export async function orphanedContents(
  db: Db,
  { createdBeforeMs, limit }: { readonly createdBeforeMs: number; readonly limit: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('response_parts')
    .select('response_id')
    .where('part', '=', sql.lit(0))
    .where('created_ms', '<', createdBeforeMs)
    .where(hasNoRow)
    .limit(limit)
    .execute()
  return rows.map((row) => row.response_id)
}

/**
 * Removes at most `limit` parts of a response without a row. Resolves to their number. The first part is
 * removed last, because `orphanedContents` finds a response by it if the removal is interrupted.
 */
export async function removeOrphanedParts(
  db: Db,
  { responseId, limit }: { readonly responseId: string; readonly limit: number },
): Promise<number> {
  const result = await db
    .deleteFrom('response_parts')
    .where('response_id', '=', responseId)
    .where(hasNoRow)
    .where('part', 'in', (eb) =>
      eb
        .selectFrom('response_parts as last')
        .select('last.part')
        .where('last.response_id', '=', responseId)
        .orderBy('last.part', 'desc')
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

const hasNoRow = sql<boolean>`not exists (select 1 from stored_responses where id = response_id)`

/** The position of a part of a response, which is the context of its encrypted text. */
export function responsePartContext(responseId: string, part: number): SealContext {
  return { table: 'response_parts', row: `${responseId} ${part}` }
}
