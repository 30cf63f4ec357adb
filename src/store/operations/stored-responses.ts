import { sql } from 'kysely'
import {
  nativeResponseIdPrefix,
  NATIVE_RETENTION_MS,
  MAX_PREVIOUS_RESPONSES,
  addStreamedPart,
  type ContentPartCounts,
  type StoredContent,
  type StoredResponse,
  type BackgroundOutcome,
  type ReasoningOrigin,
  type StreamedPart,
  type Provenance,
} from '../../domain/stored-response.ts'
import { type Secrets, seal, unseal } from '../secrets.ts'
import type { Db } from './operation.ts'
import {
  updateStoredBytes,
  type StoredBytesOfUser,
  STORED_RESPONSE_BYTES_SQL,
  responsePart,
} from './signatures-and-response-parts.ts'
import type { StoredResponseRow } from '../row-types.ts'

/**
 * Milliseconds after which the call of a background response is surely settled. This includes a margin for a
 * node that was down.
 */
const SETTLED_WITHIN_MS = 7 * 24 * 3_600_000

/**
 * A response to be stored. If its content is stored in parts already, `content` has the number of parts
 * instead.
 */
type ResponseToStore = Omit<StoredResponse, 'content'> & {
  readonly content: StoredContent | PartsWithBytes | null
}

/** Number of parts of a response's content, and its size in bytes. */
type PartsWithBytes = ContentPartCounts & { readonly bytes: number }

/**
 * Stores a response, replacing one with the same id. Its content is encrypted so that it can be decrypted
 * only for this row. A response of a deleted user is not stored, because a call may end after all data of its
 * user was removed. Resolves to the number of bytes now stored for the user; undefined if the response has no
 * content.
 */
export async function storeResponse(
  db: Db,
  response: ResponseToStore,
  secrets: Secrets,
): Promise<StoredBytesOfUser | undefined> {
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
  const [sum] = await updateStoredBytes(db, { written: await countedRows(db, id), removed })
  return sum
}

function countedRows(db: Db, id: string) {
  return db
    .selectFrom('stored_responses')
    .select(['user_id', STORED_RESPONSE_BYTES_SQL.as('bytes')])
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

/**
 * Records how a background response ended, for the node that holds the reserved quota. Only the first record
 * counts.
 */
export async function recordOutcome(
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

/** Records which part of a background response was streamed to the client. */
export async function recordStreamedPart(
  db: Db,
  { id, part }: { readonly id: string; readonly part: StreamedPart },
): Promise<void> {
  const row = () => db.updateTable('stored_responses').where('id', '=', id)
  // Locks the row, so that a part recorded by another node at the same time is not lost.
  const found = await row()
    .set((eb) => ({ streamed: eb.ref('streamed') }))
    .returning('streamed')
    .executeTakeFirst()
  if (!found) return
  const parts = addStreamedPart(streamedParts(found.streamed), part)
  await row()
    .set({ streamed: JSON.stringify(parts) })
    .execute()
}

/**
 * Removes a response of a user. The response of a background call is not removed but expired, because the row
 * may be needed to settle the call.
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
    .returning(['user_id', STORED_RESPONSE_BYTES_SQL.as('bytes')])
    .execute()
  await updateStoredBytes(db, { removed })
  await db
    .updateTable('stored_responses')
    .set({ expires_ms: nowMs })
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .execute()
}

/**
 * Removes at most `limit` expired responses of each kind, and at most `limit` expired origins of reasoning.
 * Resolves to the number of all removed rows.
 */
export async function pruneResponses(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  // Responses stored by the provider are not in the index by expiry, which would add a fifth to their cost.
  // Their ids sort by time, so they are found by id.
  const native = await db
    .deleteFrom('stored_responses')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('stored_responses')
        .select('id')
        .where('id', '<', nativeResponseIdPrefix(nowMs - NATIVE_RETENTION_MS))
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
    .returning(['user_id', STORED_RESPONSE_BYTES_SQL.as('bytes')])
    .execute()
  await updateStoredBytes(db, { removed: others })
  const origins = await db
    .deleteFrom('reasoning_origins')
    .where('hash', 'in', (eb) =>
      eb.selectFrom('reasoning_origins').select('hash').where('expires_ms', '<=', nowMs).limit(limit),
    )
    .executeTakeFirst()
  return Number(native.numDeletedRows + origins.numDeletedRows) + others.length
}

/** Name of the table, part of the context in which its values are encrypted. */
const RESPONSES_TABLE = 'stored_responses'
/** Maximum number of values in a list of one query, because databases limit the number of parameters. */
const MAX_PARAMETERS = 1_000

/** All columns of a stored response except its content. */
const FACTS = [
  'id',
  'user_id',
  'model',
  'group_name',
  'channel',
  'key_tag',
  'upstream_id',
  'tokens',
  'previous_id',
  'created_ms',
  'expires_ms',
  'call_id',
  'rate',
  'price_incomplete',
  'outcome',
  'streamed',
] as const

/** A row of a stored response without its content. */
type FactsRow = Pick<StoredResponseRow, (typeof FACTS)[number]>

/** One response in a chain in which each continues the previous one. */
export interface ResponseChainLink {
  readonly id: string
  readonly previousId: string | null
  /** Size of its content in bytes; null if it has none. */
  readonly bytes: number | null
}

/** One part of a stored text. */
export interface StoredTextPart {
  readonly text: string
  readonly isLast: boolean
}

/**
 * Which response is looked up, for which user, and when. Responses of other users and expired ones are not
 * found.
 */
interface LookUp {
  readonly id: string
  readonly userId: number
  readonly nowMs: number
}

/**
 * Finds a response of a user without its content, and the size of the content in bytes (0 if it has none).
 */
export async function responseFacts(
  db: Db,
  lookUp: LookUp,
): Promise<{ readonly response: StoredResponse; readonly contentBytes: number } | null> {
  const row = await located(db, lookUp)
    .select([...FACTS, 'kept_bytes'])
    .executeTakeFirst()
  return row ? { response: factsOf(row), contentBytes: row.kept_bytes ?? 0 } : null
}

/**
 * Lists a response and all responses that it continues, latest first, without their contents. The list ends
 * before a missing response, and after the response with which the list exceeds `MAX_PREVIOUS_RESPONSES` entries or
 * `maxBytes` in total.
 */
export async function responseChain(
  db: Db,
  { id, userId, nowMs, maxBytes }: LookUp & { readonly maxBytes: number },
): Promise<readonly ResponseChainLink[]> {
  const found = sql`response.user_id = ${userId} and response.expires_ms > ${nowMs}`
  const { rows } = await sql<ResponseChainLink>`
    with recursive chain (id, previous_id, bytes, links, total) as (
      select id, previous_id, kept_bytes, 1, coalesce(kept_bytes, 0)
        from stored_responses as response where id = ${id} and ${found}
      union all
      select response.id, response.previous_id, kept_bytes, links + 1, total + coalesce(kept_bytes, 0)
        from chain join stored_responses as response on response.id = chain.previous_id
        where ${found} and links <= ${sql.lit(MAX_PREVIOUS_RESPONSES)} and total <= ${maxBytes})
    select id, previous_id as "previousId", bytes from chain order by links`.execute(db)
  return rows
}

/** Reads a part (counted from 0) of the input or output of a stored response; null if it no longer exists. */
export async function readStoredText(
  db: Db,
  { of, part, ...lookUp }: LookUp & { readonly of: keyof StoredContent; readonly part: number },
  secrets: Secrets,
): Promise<StoredTextPart | null> {
  const row = await located(db, lookUp).select('content_cipher').executeTakeFirst()
  const cipher = row?.content_cipher ?? null
  if (cipher === null) return null
  const place = { table: RESPONSES_TABLE, row: lookUp.id }
  const content = JSON.parse(unseal(secrets, cipher, place)) as StoredContent | ContentPartCounts
  if (!('inputParts' in content)) return part === 0 ? { text: content[of], isLast: true } : null
  const { inputParts, responseParts } = content
  const [first, count] = of === 'input' ? [0, inputParts] : [inputParts, responseParts]
  if (part >= count) return null
  const text = await responsePart(db, { responseId: lookUp.id, part: first + part }, secrets)
  return text === undefined ? null : { text, isLast: part === count - 1 }
}

/**
 * Finds where encrypted reasoning came from (channel and key), by its hashes, in any order. Unknown hashes
 * are left out.
 */
export function reasoningOrigins(
  db: Db,
  { hashes, nowMs }: { readonly hashes: readonly string[]; readonly nowMs: number },
): Promise<ReasoningOrigin[]> {
  return db
    .selectFrom('reasoning_origins')
    .select(['hash', 'channel', 'key_tag as keyTag'])
    .where('hash', 'in', hashes)
    .where('expires_ms', '>', nowMs)
    .execute()
}

/**
 * Reads the responses of background calls by the ids of the calls, with what nodes recorded about how they
 * ended.
 */
export async function backgroundOutcomes(
  db: Db,
  { callIds }: { readonly callIds: readonly string[] },
): Promise<BackgroundOutcome[]> {
  const rows: FactsRow[] = []
  for (let at = 0; at < callIds.length; at += MAX_PARAMETERS) {
    const found = await db
      .selectFrom('stored_responses')
      .select(FACTS)
      .where('call_id', 'in', callIds.slice(at, at + MAX_PARAMETERS))
      .where('call_id', 'is not', null)
      .execute()
    rows.push(...found)
  }
  return rows.map((row) => ({
    response: factsOf(row),
    outcome: row.outcome,
    streamed: streamedParts(row.streamed),
  }))
}

function located(db: Db, { id, userId, nowMs }: LookUp) {
  return db
    .selectFrom('stored_responses')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where('expires_ms', '>', nowMs)
}

function factsOf(row: FactsRow): StoredResponse {
  return {
    id: row.id,
    userId: row.user_id,
    model: row.model,
    group: row.group_name,
    channel: row.channel,
    keyTag: row.key_tag,
    upstreamId: row.upstream_id,
    tokens: row.tokens,
    previousId: row.previous_id,
    createdMs: row.created_ms,
    expiresMs: row.expires_ms,
    content: null,
    callId: row.call_id,
    rate: row.rate,
    ...(row.price_incomplete === 1 && { priceIncomplete: true }),
  }
}

/** Parses the stored JSON of the parts that were streamed to clients. */
function streamedParts(json: string | null): readonly StreamedPart[] {
  return json === null ? [] : (JSON.parse(json) as readonly StreamedPart[])
}

/**
 * Provenance of a settled call (which channel and key answered), with the other values stored in the same
 * rows.
 */
export interface CallProvenance {
  readonly user_id: number
  readonly model: string
  readonly group: string
  readonly channel: string
  readonly ended_ms: number
  readonly provenance: Provenance
}

/**
 * Stores the provenance of settled calls, with one statement per table. On SQLite this is not needed, because
 * settling a call stores it.
 */
export async function storeProvenance(
  db: Db,
  { calls }: { readonly calls: readonly CallProvenance[] },
): Promise<void> {
  const responses = byKey(calls.flatMap(responseRow), ({ id }) => id)
  if (responses.length > 0)
    await db
      .insertInto('stored_responses')
      .values(responses)
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet((excluded) => ({
          channel: excluded.ref('excluded.channel'),
          key_tag: excluded.ref('excluded.key_tag'),
          upstream_id: excluded.ref('excluded.upstream_id'),
          tokens: excluded.ref('excluded.tokens'),
          created_ms: excluded.ref('excluded.created_ms'),
          expires_ms: excluded.ref('excluded.expires_ms'),
          call_id: sql<null>`null`,
          rate: sql<null>`null`,
        })),
      )
      .execute()
  const origins = byKey(calls.flatMap(originRows), ({ hash }) => hash)
  if (origins.length > 0)
    await db
      .insertInto('reasoning_origins')
      .values(origins)
      .onConflict((conflict) =>
        conflict.column('hash').doUpdateSet((excluded) => ({
          channel: excluded.ref('excluded.channel'),
          key_tag: excluded.ref('excluded.key_tag'),
          expires_ms: excluded.ref('excluded.expires_ms'),
        })),
      )
      .execute()
}

function responseRow({ provenance, ...call }: CallProvenance) {
  const { response, keyTag } = provenance
  if (!response) return []
  return [
    {
      id: response.id,
      user_id: call.user_id,
      model: call.model,
      group_name: call.group,
      channel: call.channel,
      key_tag: keyTag,
      upstream_id: response.upstreamId,
      tokens: response.tokens,
      previous_id: response.previousId,
      created_ms: call.ended_ms,
      expires_ms: call.ended_ms + NATIVE_RETENTION_MS,
    },
  ]
}

function originRows({ channel, ended_ms, provenance: { keyTag, reasoning } }: CallProvenance) {
  const expiresMs = ended_ms + NATIVE_RETENTION_MS
  return reasoning.map((hash) => ({ hash, channel, key_tag: keyTag, expires_ms: expiresMs }))
}

/**
 * Keeps only the last row of each key, because one statement cannot write a row twice. Sorts the rows, so
 * that nodes cannot deadlock.
 */
function byKey<Row>(rows: readonly Row[], keyOf: (row: Row) => string): Row[] {
  const latest = new Map(rows.map((row) => [keyOf(row), row]))
  return [...latest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}
