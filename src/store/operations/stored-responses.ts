import { sql } from 'kysely'
import type { ReasoningOrigin, StoredContent, StoredResponse } from '../../domain/stored-response.ts'
import type { StoredResponseRow } from '../schema.ts'
import { type Secrets, unseal } from '../secrets.ts'
import type { Db } from './operation.ts'

/** Name of the table in the context of its encrypted values. */
export const RESPONSES_TABLE = 'stored_responses'
/** Longest chain of kept responses that is rebuilt. */
const MAX_CHAIN = 1_000
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
  'outcome',
] as const
/** Size of the content, which is sealed as base64; neither database reads it for this. */
const CONTENT_BYTES = sql<number | null>`octet_length(content_cipher) * 3 / 4`.as('contentBytes')

/** Owner, id and time of a look-up; ids of other owners and expired ones are not found. */
interface LookUp {
  readonly id: string
  readonly userId: number
  readonly nowMs: number
}

/** Finds a response of a user. */
export async function storedResponse(
  db: Db,
  lookUp: LookUp,
  secrets: Secrets,
): Promise<StoredResponse | null> {
  const row = await find(db, lookUp)
  return row ? fromRow(row, secrets) : null
}

/** Finds a response of a user without its content, and the bytes that the content takes; 0 = it has none. */
export async function responseFacts(
  db: Db,
  lookUp: LookUp,
  secrets: Secrets,
): Promise<{ readonly response: StoredResponse; readonly contentBytes: number } | null> {
  const row = await located(db, lookUp)
    .select([...FACTS, CONTENT_BYTES])
    .executeTakeFirst()
  if (!row) return null
  const { contentBytes, ...facts } = row
  return { response: fromRow({ ...facts, content_cipher: null }, secrets), contentBytes: contentBytes ?? 0 }
}

/** Bytes that the contents of a kept response and of all that it continues take. */
export async function chainBytes(db: Db, lookUp: LookUp): Promise<number> {
  let bytes = 0
  let next: string | null = lookUp.id
  for (let links = 0; next !== null && links < MAX_CHAIN; links += 1) {
    const link: { previous_id: string | null; contentBytes: number | null } | undefined = await located(db, {
      ...lookUp,
      id: next,
    })
      .select(['previous_id', CONTENT_BYTES])
      .executeTakeFirst()
    bytes += link?.contentBytes ?? 0
    next = link?.previous_id ?? null
  }
  return bytes
}

/**
 * Lists a kept response and all that it continues, the latest first. Ends early where one is missing, or too
 * far back.
 */
export async function responseChain(db: Db, lookUp: LookUp, secrets: Secrets): Promise<StoredResponse[]> {
  const chain: StoredResponse[] = []
  for (let id: string | null = lookUp.id; id !== null && chain.length < MAX_CHAIN; ) {
    const row: StoredResponseRow | undefined = await find(db, { ...lookUp, id })
    if (!row) break
    chain.push(fromRow(row, secrets))
    id = row.previous_id
  }
  return chain
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

/** Responses of background calls by the ids of the calls, with their ends where another node saw one. */
export async function backgroundOutcomes(
  db: Db,
  { callIds }: { readonly callIds: readonly string[] },
  secrets: Secrets,
): Promise<{ readonly response: StoredResponse; readonly outcome: string | null }[]> {
  const rows: StoredResponseRow[] = []
  for (let at = 0; at < callIds.length; at += MAX_PARAMETERS) {
    const found = await db
      .selectFrom('stored_responses')
      .selectAll()
      .where('call_id', 'in', callIds.slice(at, at + MAX_PARAMETERS))
      .where('call_id', 'is not', null)
      .execute()
    rows.push(...found)
  }
  return rows.map((row) => ({ response: fromRow(row, secrets), outcome: row.outcome }))
}

function find(db: Db, lookUp: LookUp): Promise<StoredResponseRow | undefined> {
  return located(db, lookUp).selectAll().executeTakeFirst()
}

function located(db: Db, { id, userId, nowMs }: LookUp) {
  return db
    .selectFrom('stored_responses')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where('expires_ms', '>', nowMs)
}

function fromRow(row: StoredResponseRow, secrets: Secrets): StoredResponse {
  const { id, content_cipher: cipher } = row
  return {
    id,
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
    content:
      cipher === null
        ? null
        : (JSON.parse(unseal(secrets, cipher, { table: RESPONSES_TABLE, row: id })) as StoredContent),
    callId: row.call_id,
    rate: row.rate,
  }
}
