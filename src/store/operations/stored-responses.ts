import { sql } from 'kysely'
import type { KeptKind } from '../../domain/kept.ts'
import {
  nativeResponseIdPrefix,
  NATIVE_RETENTION_MS,
  MAX_PREVIOUS_RESPONSES,
  addStreamedPart,
  type StoredResponse,
  type BackgroundOutcome,
  type ReasoningOrigin,
  type StreamedPart,
  type Provenance,
} from '../../domain/stored-response.ts'
import type { Db } from './operation.ts'
import type { StoredResponseRow } from '../row-types.ts'

/**
 * Milliseconds after which the call of a background response is surely settled. This includes a margin for a
 * node that was down.
 */
const SETTLED_WITHIN_MS = 7 * 24 * 3_600_000

/**
 * Stores the row of a response, replacing an earlier state of it. The content of a response that the gateway keeps is
 * stored with it: `storeKept`.
 */
export async function storeResponse(db: Db, response: StoredResponse): Promise<void> {
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
    call_id: response.callId,
    rate: response.rate,
    price_incomplete: response.priceIncomplete ? 1 : 0,
  }
  await db
    .insertInto('stored_responses')
    .values({ id: response.id, ...values, outcome: null, streamed: null })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
    .execute()
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
 * Removes the row of a user's response. The response of a background call is not removed but expired, because the row
 * may be needed to settle the call. A response that the gateway keeps is removed with its content: `removeKept`.
 */
export async function deleteResponse(
  db: Db,
  { id, userId, nowMs }: { readonly id: string; readonly userId: number; readonly nowMs: number },
): Promise<void> {
  await db
    .deleteFrom('stored_responses')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where('call_id', 'is', null)
    .execute()
  await db
    .updateTable('stored_responses')
    .set({ expires_ms: nowMs })
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .execute()
}

/**
 * Removes at most `limit` expired rows each of responses that providers have, of background calls, and of origins of
 * reasoning. Resolves to the number of all removed rows. Responses that the gateway keeps are removed by `pruneKept`.
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
        .where('call_id', 'is', null)
        .where('expires_ms', '<=', nowMs)
        .limit(limit),
    )
    .executeTakeFirst()
  const background = await db
    .deleteFrom('stored_responses')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('stored_responses')
        .select('id')
        .where('call_id', 'is not', null)
        .where('expires_ms', '<=', nowMs - SETTLED_WITHIN_MS)
        .limit(limit),
    )
    .executeTakeFirst()
  const origins = await db
    .deleteFrom('reasoning_origins')
    .where('hash', 'in', (eb) =>
      eb.selectFrom('reasoning_origins').select('hash').where('expires_ms', '<=', nowMs).limit(limit),
    )
    .executeTakeFirst()
  return Number(native.numDeletedRows + background.numDeletedRows + origins.numDeletedRows)
}

/** Maximum number of values in a list of one query, because databases limit the number of parameters. */
const MAX_PARAMETERS = 1_000

/** The columns of a response, with those that nodes record of a background call. */
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

/** A row of a response. */
type FactsRow = Pick<StoredResponseRow, (typeof FACTS)[number]>

/** One response in a chain in which each continues the previous one. */
export interface ResponseChainLink {
  readonly id: string
  readonly previousId: string | null
  /** Size of its content in bytes; null if it has none. */
  readonly bytes: number | null
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
  const row = await db
    .selectFrom('stored_responses')
    .leftJoin('kept', (on) => on.on('kept.kind', '=', CONTENT_KIND).onRef('kept.key', '=', 'id'))
    .select(COLUMNS)
    .select('kept.bytes as content_bytes')
    .where('id', '=', lookUp.id)
    .where('stored_responses.user_id', '=', lookUp.userId)
    .where('stored_responses.expires_ms', '>', lookUp.nowMs)
    .executeTakeFirst()
  return row ? { response: factsOf(row), contentBytes: row.content_bytes ?? 0 } : null
}

/** The kind of what is kept of a response. */
const CONTENT_KIND = 'response' satisfies KeptKind

/** The columns of `FACTS`, in a query with other tables. */
const COLUMNS = FACTS.map((name) => `stored_responses.${name}` as const)

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
  const contents = sql`left join kept on kept.kind = ${sql.lit(CONTENT_KIND)} and kept.key = response.id`
  const { rows } = await sql<ResponseChainLink>`
    with recursive chain (id, previous_id, bytes, links, total) as (
      select response.id, response.previous_id, kept.bytes, 1, coalesce(kept.bytes, 0)
        from stored_responses as response ${contents} where response.id = ${id} and ${found}
      union all
      select response.id, response.previous_id, kept.bytes, links + 1, total + coalesce(kept.bytes, 0)
        from chain join stored_responses as response on response.id = chain.previous_id ${contents}
        where ${found} and links <= ${sql.lit(MAX_PREVIOUS_RESPONSES)} and total <= ${maxBytes})
    select id, previous_id as "previousId", bytes from chain order by links`.execute(db)
  return rows
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
          // Not `expires_ms`: the row stays expired if the response was deleted meanwhile.
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
