import { sql } from 'kysely'
import {
  type BackgroundOutcome,
  type ContentParts,
  MAX_CHAIN,
  type ReasoningOrigin,
  type StoredContent,
  type StoredResponse,
  type StreamedPart,
} from '../../domain/stored-response.ts'
import type { StoredResponseRow } from '../schema.ts'
import { type Secrets, unseal } from '../secrets.ts'
import type { Db } from './operation.ts'
import { responsePart } from './response-parts.ts'

/** Name of the table in the context of its encrypted values. */
export const RESPONSES_TABLE = 'stored_responses'
/** Values in the list of one query: databases bound the parameters of a statement. */
const MAX_PARAMETERS = 1_000

/** Columns without the content. */
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

/** Row without its content. */
type FactsRow = Pick<StoredResponseRow, (typeof FACTS)[number]>

/** One of a chain of responses that continue each other. */
export interface ChainLink {
  readonly id: string
  readonly previousId: string | null
  /** Bytes of its content; null = it has none. */
  readonly bytes: number | null
}

/** A part of a kept text. */
export interface KeptText {
  readonly text: string
  readonly isLast: boolean
}

/** Owner, id and time of a look-up; ids of other owners and expired ones are not found. */
interface LookUp {
  readonly id: string
  readonly userId: number
  readonly nowMs: number
}

/** Finds a response of a user without its content, and the size of the content in bytes; 0 if it has none. */
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
 * Lists a response and all that it continues, the latest first, without their contents. Ends early at a
 * missing one, and after the first one by which there are too many, or more than `maxBytes` in total.
 */
export async function responseChain(
  db: Db,
  { id, userId, nowMs, maxBytes }: LookUp & { readonly maxBytes: number },
): Promise<readonly ChainLink[]> {
  const found = sql`response.user_id = ${userId} and response.expires_ms > ${nowMs}`
  const { rows } = await sql<ChainLink>`
    with recursive chain (id, previous_id, bytes, links, total) as (
      select id, previous_id, kept_bytes, 1, coalesce(kept_bytes, 0)
        from stored_responses as response where id = ${id} and ${found}
      union all
      select response.id, response.previous_id, kept_bytes, links + 1, total + coalesce(kept_bytes, 0)
        from chain join stored_responses as response on response.id = chain.previous_id
        where ${found} and links <= ${sql.lit(MAX_CHAIN)} and total <= ${maxBytes})
    select id, previous_id as "previousId", bytes from chain order by links`.execute(db)
  return rows
}

/** Reads a part, counted from 0, of a kept response's input or output. Null if it no longer exists. */
export async function keptText(
  db: Db,
  { of, part, ...lookUp }: LookUp & { readonly of: keyof StoredContent; readonly part: number },
  secrets: Secrets,
): Promise<KeptText | null> {
  const row = await located(db, lookUp).select('content_cipher').executeTakeFirst()
  const cipher = row?.content_cipher ?? null
  if (cipher === null) return null
  const place = { table: RESPONSES_TABLE, row: lookUp.id }
  const content = JSON.parse(unseal(secrets, cipher, place)) as StoredContent | ContentParts
  if (!('inputParts' in content)) return part === 0 ? { text: content[of], isLast: true } : null
  const { inputParts, responseParts } = content
  const [first, count] = of === 'input' ? [0, inputParts] : [inputParts, responseParts]
  if (part >= count) return null
  const text = await responsePart(db, { responseId: lookUp.id, part: first + part }, secrets)
  return text === undefined ? null : { text, isLast: part === count - 1 }
}

/** Finds the origins of encrypted reasoning, in any order; unknown ones are left out. */
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

/** Responses of background calls by the ids of the calls, with what nodes recorded about them. */
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

/** Reads the parts that were streamed. */
export function streamedParts(json: string | null): readonly StreamedPart[] {
  return json === null ? [] : (JSON.parse(json) as readonly StreamedPart[])
}
