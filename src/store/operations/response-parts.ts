import { sql } from 'kysely'
import type { ContentParts, StoredContent } from '../../domain/stored-response.ts'
import { type Secrets, seal, type SealContext, unseal } from '../secrets.ts'
import type { Db } from './operation.ts'

/** One part of a large content. */
export interface ResponsePart {
  readonly responseId: string
  /** Position among the parts of the input and then of the response, from 0. */
  readonly part: number
  readonly text: string
  readonly createdMs: number
}

/** Size of a sealed text before it was sealed, which makes it base64; neither database reads it for this. */
export const CONTENT_BYTES = sql<number>`octet_length(content_cipher) * 3 / 4`

/** Stores a part, encrypted for its place, before the row of its response; an earlier attempt is replaced. */
export async function storeResponsePart(
  db: Db,
  { responseId, part, text, createdMs }: ResponsePart,
  secrets: Secrets,
): Promise<void> {
  const values = { created_ms: createdMs, content_cipher: seal(secrets, text, placeOf(responseId, part)) }
  await db
    .insertInto('response_parts')
    .values({ response_id: responseId, part, ...values })
    .onConflict((conflict) => conflict.columns(['response_id', 'part']).doUpdateSet(values))
    .execute()
}

/** Puts a content together. Undefined if a part is missing. */
export async function joinParts(
  db: Db,
  responseId: string,
  { inputParts, responseParts }: ContentParts,
  secrets: Secrets,
): Promise<StoredContent | undefined> {
  const count = inputParts + responseParts
  const rows = await db
    .selectFrom('response_parts')
    .select(['part', 'content_cipher'])
    .where('response_id', '=', responseId)
    .where('part', '<', count)
    .orderBy('part')
    .execute()
  if (rows.length < count) return undefined
  const texts = rows.map(({ part, content_cipher: cipher }) =>
    unseal(secrets, cipher, placeOf(responseId, part)),
  )
  return { input: texts.slice(0, inputParts).join(''), response: texts.slice(inputParts).join('') }
}

/** Bytes that the parts of a content take; 0 = it has none. */
export async function partsBytes(db: Db, responseId: string): Promise<number> {
  const row = await db
    .selectFrom('response_parts')
    .select((eb) => eb.fn.sum<number | null>(CONTENT_BYTES).as('bytes'))
    .where('response_id', '=', responseId)
    .executeTakeFirst()
  return row?.bytes ?? 0
}

/**
 * Lists responses that have parts but no row: they were removed, or the gateway stopped before it wrote the
 * row. A read, because the search passes over all large contents.
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
 * Removes at most `limit` parts of a response that has no row; resolves to their number. The first part is
 * the last to go, so that an interrupted removal is found again.
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

function placeOf(responseId: string, part: number): SealContext {
  return { table: 'response_parts', row: `${responseId} ${part}` }
}
