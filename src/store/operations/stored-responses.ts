import type {
  BackgroundOutcome,
  ContentParts,
  ReasoningOrigin,
  StoredContent,
  StoredResponse,
} from '../../domain/stored-response.ts'
import type { StreamedPart } from '../../domain/streamed-part.ts'
import type { StoredResponseRow } from '../schema.ts'
import { type Secrets, unseal } from '../secrets.ts'
import type { Db } from './operation.ts'
import { CONTENT_BYTES, joinParts, partsBytes } from './response-parts.ts'

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
  'streamed',
] as const

/** Size of the content in the row itself. */
const OWN_BYTES = CONTENT_BYTES.$castTo<number | null>().as('ownBytes')

/** Row without its content. */
type FactsRow = Pick<StoredResponseRow, (typeof FACTS)[number]>

/** Row that is asked for the size of its content. */
interface Link {
  readonly id: string
  readonly ownBytes: number | null
}

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
  return (row && (await fromRow(db, row, secrets))) ?? null
}

/** Finds a response of a user without its content, and the bytes that the content takes; 0 = it has none. */
export async function responseFacts(
  db: Db,
  lookUp: LookUp,
): Promise<{ readonly response: StoredResponse; readonly contentBytes: number } | null> {
  const row = await located(db, lookUp)
    .select([...FACTS, OWN_BYTES])
    .executeTakeFirst()
  return row ? { response: factsOf(row), contentBytes: await contentBytes(db, row) } : null
}

/** Bytes that the contents of a kept response and of all that it continues take. */
export async function chainBytes(db: Db, lookUp: LookUp): Promise<number> {
  let bytes = 0
  let next: string | null = lookUp.id
  for (let links = 0; next !== null && links < MAX_CHAIN; links += 1) {
    const link: (Link & { previous_id: string | null }) | undefined = await located(db, {
      ...lookUp,
      id: next,
    })
      .select(['id', 'previous_id', OWN_BYTES])
      .executeTakeFirst()
    if (link) bytes += await contentBytes(db, link)
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
    const response = row && (await fromRow(db, row, secrets))
    if (!response) break
    chain.push(response)
    id = response.previousId
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

/** Responses of background calls by the ids of the calls, with what nodes noted of them. */
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

async function contentBytes(db: Db, { id, ownBytes }: Link): Promise<number> {
  return ownBytes === null ? 0 : ownBytes + (await partsBytes(db, id))
}

/** The response of a row. Undefined if a part of its content is gone, as it was removed meanwhile. */
async function fromRow(
  db: Db,
  row: StoredResponseRow,
  secrets: Secrets,
): Promise<StoredResponse | undefined> {
  const { id, content_cipher: cipher } = row
  if (cipher === null) return factsOf(row)
  const place = { table: RESPONSES_TABLE, row: id }
  const sealed = JSON.parse(unseal(secrets, cipher, place)) as StoredContent | ContentParts
  const content = 'inputParts' in sealed ? await joinParts(db, id, sealed, secrets) : sealed
  return content && { ...factsOf(row), content }
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
  }
}

/** Reads the parts that were streamed. */
export function streamedParts(json: string | null): readonly StreamedPart[] {
  return json === null ? [] : (JSON.parse(json) as readonly StreamedPart[])
}
