import { sql } from 'kysely'
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

/** Reads a part. Undefined if it is missing. */
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
  return row && unseal(secrets, row.content_cipher, placeOf(responseId, part))
}

/**
 * Lists responses that have parts but no row: they were removed, or the gateway stopped before it wrote the
 * row. This is a read, because the search passes over all large contents.
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
 * removed last, so that an interrupted removal is found again.
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
