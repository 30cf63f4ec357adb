import {
  type ContentParts,
  idBeginning,
  NATIVE_RETENTION_MS,
  type StoredContent,
  type StoredResponse,
  type StreamedPart,
  withPart,
} from '../../domain/stored-response.ts'
import { type Secrets, seal } from '../secrets.ts'
import type { Db } from './operation.ts'
import { countKept, type KeptSum, RESPONSE_BYTES } from './kept-sums.ts'
import { RESPONSES_TABLE, streamedParts } from './stored-responses.ts'

/** Time within which the call of a background response is settled, with a margin for a node that was down. */
const SETTLED_WITHIN_MS = 7 * 24 * 3_600_000

/** Stored response, with the numbers of its parts if the content is already stored. */
type ResponseToStore = Omit<StoredResponse, 'content'> & {
  readonly content: StoredContent | PartsWithBytes | null
}

/** Parts of a content, and its bytes. */
type PartsWithBytes = ContentParts & { readonly bytes: number }

/**
 * Stores a response, replacing one with the same id. Its content is encrypted for its row. A response of a
 * deleted user is not stored, because its call may end after everything kept for the user was removed.
 * Resolves to the total size of what is kept for the user; undefined if the response has no content.
 */
export async function storeResponse(
  db: Db,
  response: ResponseToStore,
  secrets: Secrets,
): Promise<KeptSum | undefined> {
  const { id, content } = response
  if (content && (await isDeleted(db, response.userId))) return undefined
  const values = {
    user_id: response.userId,
    model: response.model,
    group_name: response.group,
    channel: response.channel,
    key_tag: response.keyTag,
    upstream_id: response.upstreamId,
    tokens: response.tokens,
    previous_id: response.previousId,
    created_ms: response.createdMs,
    expires_ms: response.expiresMs,
    content_cipher: content && seal(secrets, JSON.stringify(content), { table: RESPONSES_TABLE, row: id }),
    call_id: response.callId,
    rate: response.rate,
    price_incomplete: response.priceIncomplete ? 1 : 0,
    kept_bytes: content && bytesOf(content),
  }
  const removed = await countedRows(db, id)
  await db
    .insertInto('stored_responses')
    .values({ id, ...values, outcome: null, streamed: null })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
    .execute()
  const [sum] = await countKept(db, { written: await countedRows(db, id), removed })
  return sum
}

function countedRows(db: Db, id: string) {
  return db
    .selectFrom('stored_responses')
    .select(['user_id', RESPONSE_BYTES.as('bytes')])
    .where('id', '=', id)
    .execute()
}

function bytesOf(content: StoredContent | PartsWithBytes): number {
  if ('inputParts' in content) return content.bytes
  return Buffer.byteLength(content.input) + Buffer.byteLength(content.response)
}

async function isDeleted(db: Db, userId: number): Promise<boolean> {
  const query = db.selectFrom('users').select('id').where('id', '=', userId)
  return (await query.where('deleted_time', 'is not', null).executeTakeFirst()) !== undefined
}

/** Records how a background response ended, for the node that holds its quota; the first record stays. */
export async function noteOutcome(
  db: Db,
  { id, outcome }: { readonly id: string; readonly outcome: string },
): Promise<void> {
  await db
    .updateTable('stored_responses')
    .set({ outcome })
    .where('id', '=', id)
    .where('outcome', 'is', null)
    .execute()
}

/** Records that a part of a background response was streamed. */
export async function noteStreamed(
  db: Db,
  { id, part }: { readonly id: string; readonly part: StreamedPart },
): Promise<void> {
  const row = () => db.updateTable('stored_responses').where('id', '=', id)
  // Locks the row, so that the note of another node is not lost.
  const found = await row()
    .set((eb) => ({ streamed: eb.ref('streamed') }))
    .returning('streamed')
    .executeTakeFirst()
  if (!found) return
  const parts = withPart(streamedParts(found.streamed), part)
  await row()
    .set({ streamed: JSON.stringify(parts) })
    .execute()
}

/**
 * Removes a response of a user. A response of a background call only expires, because it may be needed to
 * settle the call.
 */
export async function deleteResponse(
  db: Db,
  { id, userId, nowMs }: { readonly id: string; readonly userId: number; readonly nowMs: number },
): Promise<void> {
  const removed = await db
    .deleteFrom('stored_responses')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where('call_id', 'is', null)
    .returning(['user_id', RESPONSE_BYTES.as('bytes')])
    .execute()
  await countKept(db, { removed })
  await db
    .updateTable('stored_responses')
    .set({ expires_ms: nowMs })
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .execute()
}

/**
 * Removes at most `limit` expired responses of each kind and as many expired origins; resolves to their
 * number.
 */
export async function pruneResponses(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  // The index of expiries excludes these, because it would be a fifth of their cost; their ids sort by time.
  const native = await db
    .deleteFrom('stored_responses')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('stored_responses')
        .select('id')
        .where('id', '<', idBeginning(nowMs - NATIVE_RETENTION_MS))
        .where('content_cipher', 'is', null)
        .where('call_id', 'is', null)
        .where('expires_ms', '<=', nowMs)
        .limit(limit),
    )
    .executeTakeFirst()
  const others = await db
    .deleteFrom('stored_responses')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('stored_responses')
        .select('id')
        .where((or) => or('content_cipher', 'is not', null).or('call_id', 'is not', null))
        .where('expires_ms', '<=', nowMs)
        .where((or) => or('call_id', 'is', null).or('expires_ms', '<=', nowMs - SETTLED_WITHIN_MS))
        .limit(limit),
    )
    .returning(['user_id', RESPONSE_BYTES.as('bytes')])
    .execute()
  await countKept(db, { removed: others })
  const origins = await db
    .deleteFrom('reasoning_origins')
    .where('hash', 'in', (eb) =>
      eb.selectFrom('reasoning_origins').select('hash').where('expires_ms', '<=', nowMs).limit(limit),
    )
    .executeTakeFirst()
  return Number(native.numDeletedRows + origins.numDeletedRows) + others.length
}
