import { type KeptEntry, type KeptKind, type KeptSum, rulesOf, sharesOf } from '../../domain/kept.ts'
import { type Secrets, unseal, unsealBytes } from '../secrets.ts'
import { keptContext, keptPartContext, MAX_ROWS, ownerOf, type PartPlace, type UserAndTime } from './kept.ts'
import { type Db, inChunks } from './operation.ts'

/**
 * Finds entries by their keys, in any order. Leaves out what has expired, what belongs to another user if only its user may
 * find it, and what cannot be decrypted because it was changed, moved or encrypted with another secret.
 */
export async function findKept(
  db: Db,
  { kind, keys, userId, nowMs }: UserAndTime & { readonly kind: KeptKind; readonly keys: readonly string[] },
  secrets: Secrets,
): Promise<KeptEntry[]> {
  const select = (some: readonly string[]) => {
    const found = db.selectFrom('kept').selectAll().where('kind', '=', kind).where('key', 'in', some)
    const live = found.where('expires_ms', '>', nowMs)
    return (rulesOf(kind).readers === 'owner' ? live.where('user_id', '=', userId) : live).execute()
  }
  return (await inChunks(keys, select, MAX_ROWS)).flatMap((row) => {
    const place = {
      kind,
      key: row.key,
      userId: row.user_id,
      contentId: row.content_id,
      parts: row.parts,
      bytes: row.bytes,
    }
    const facts = unsealed(row.cipher, (cipher) => unseal(secrets, cipher, keptContext(place)))
    if (facts === null) return []
    const { token_id: tokenId, model, created_ms: createdMs, expires_ms: expiresMs } = row
    return [{ ...place, tokenId, model, facts, createdMs, expiresMs }]
  })
}

/** Which entries are listed: those of a user after a key in this order. */
export interface KeptPage {
  readonly kind: KeptKind
  readonly userId: number
  readonly after: string | undefined
  readonly order: 'asc' | 'desc'
  readonly limit: number
}

/** Lists entries of a user in the order of their keys, leaving out the same as `findKept`. */
export async function listKept(
  db: Db,
  { kind, userId, after, order, limit, nowMs }: KeptPage & { readonly nowMs: number },
  secrets: Secrets,
): Promise<KeptEntry[]> {
  // With share and owner, the entries of a user are found by an index.
  let query = db
    .selectFrom('kept')
    .select('key')
    .where('kind', '=', kind)
    .where('share', 'in', sharesOf(kind))
    .where('owner_id', '=', ownerOf(kind, userId))
    .where('user_id', '=', userId)
    .where('expires_ms', '>', nowMs)
  if (after !== undefined) query = query.where('key', order === 'asc' ? '>' : '<', after)
  const keys = (await query.orderBy('key', order).limit(limit).execute()).map(({ key }) => key)
  const found = await findKept(db, { kind, keys, userId, nowMs }, secrets)
  const byKey = new Map(found.map((entry) => [entry.key, entry]))
  return keys.flatMap((key) => byKey.get(key) ?? [])
}

/** Whether anything is kept, or anything of these kinds: false in most gateways. */
export async function hasKept(db: Db, { kinds }: { readonly kinds?: readonly KeptKind[] }): Promise<boolean> {
  const any = db.selectFrom('kept').select('kind').limit(1)
  return (await (kinds ? any.where('kind', 'in', kinds) : any).executeTakeFirst()) !== undefined
}

/** The keys and users of all entries of a kind, or of those with these keys, whether they have expired or not. */
export async function keysOfKind(
  db: Db,
  { kind, keys }: { readonly kind: KeptKind; readonly keys?: readonly string[] | undefined },
): Promise<{ readonly key: string; readonly userId: number }[]> {
  const all = db.selectFrom('kept').select(['key', 'user_id']).where('kind', '=', kind).orderBy('key')
  const rows = keys
    ? await inChunks(keys, (some) => all.where('key', 'in', some).execute(), MAX_ROWS)
    : await all.execute()
  return rows.map(({ key, user_id: userId }) => ({ key, userId }))
}

/** Contents in an `ObjectPlace` whose objects are to be removed, by their ids in order, with their numbers of parts. */
export async function lapsedContents(
  db: Db,
  { after, nowMs, limit }: { readonly after: string; readonly nowMs: number; readonly limit: number },
): Promise<readonly { readonly contentId: string; readonly parts: number }[]> {
  const rows = await db
    .selectFrom('kept')
    .select(['key', 'parts'])
    .where('kind', '=', 'incomplete_objects')
    .where('key', '>', after)
    .where('expires_ms', '<=', nowMs)
    .orderBy('key')
    .limit(limit)
    .execute()
  return rows.map(({ key: contentId, parts }) => ({ contentId, parts }))
}

/** Which batches are listed: those of these users, or of all. */
interface BatchPage {
  readonly userIds?: readonly number[] | undefined
  readonly offset: number
  readonly limit: number
  readonly nowMs: number
}

/** The ids and users of a page of batches that have not expired, the newest first, and the number of all of them. */
export async function batchPage(
  db: Db,
  { userIds, offset, limit, nowMs }: BatchPage,
): Promise<{
  readonly total: number
  readonly ids: readonly { readonly id: string; readonly userId: number }[]
}> {
  if (userIds?.length === 0) return { total: 0, ids: [] }
  const kind = 'batch'
  const live = db.selectFrom('kept').where('kind', '=', kind).where('expires_ms', '>', nowMs)
  // With share and owner, the entries of a user are found by an index.
  const matching = userIds
    ? live
        .where('share', '=', rulesOf(kind).share ?? '')
        .where(
          'owner_id',
          'in',
          userIds.map((id) => ownerOf(kind, id)),
        )
        .where('user_id', 'in', userIds)
    : live
  const { total } = await matching
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const ids = await matching
    .select(['key as id', 'user_id as userId'])
    .orderBy('created_ms', 'desc')
    .orderBy('key', 'desc')
    .offset(offset)
    .limit(limit)
    .execute()
  return { total, ids }
}

/** Bytes that a user keeps in a share. */
export async function keptBytes(
  db: Db,
  { share, userId }: Pick<KeptSum, 'share' | 'userId'>,
): Promise<number> {
  const sums = db.selectFrom('kept_sums').select('bytes').where('share', '=', share)
  return (await sums.where('user_id', '=', userId).executeTakeFirst())?.bytes ?? 0
}

/** Reads a part of a content; null if it was removed or cannot be decrypted. */
export async function readKeptPart(db: Db, place: PartPlace, secrets: Secrets): Promise<Uint8Array | null> {
  const row = await db
    .selectFrom('kept_parts')
    .select('cipher')
    .where('content_id', '=', place.contentId)
    .where('part', '=', place.part)
    .executeTakeFirst()
  const bytes = unsealed(row?.cipher ?? null, (cipher) =>
    unsealBytes(secrets, cipher, keptPartContext(place)),
  )
  // A small buffer is a view of a larger memory, all of which would be cloned for the thread that gets it.
  return bytes && new Uint8Array(bytes)
}

function unsealed<Plain>(cipher: string | null, open: (cipher: string) => Plain): Plain | null {
  try {
    return cipher === null ? null : open(cipher)
  } catch {
    return null
  }
}
