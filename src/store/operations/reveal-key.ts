import { type Secrets, unseal } from '../secrets.ts'
import type { Db } from './operation.ts'

/** Decrypts the key of a live token, without `sk-`; null if the user has no such token. */
export async function revealKey(
  db: Db,
  { tokenId, userId }: { readonly tokenId: number; readonly userId: number },
  secrets: Secrets,
): Promise<string | null> {
  const [found] = await revealKeys(db, { tokenIds: [tokenId], userId }, secrets)
  return found?.key ?? null
}

/** Decrypts the keys of the user's live tokens among `tokenIds`, without `sk-`, oldest token first. */
export async function revealKeys(
  db: Db,
  { tokenIds, userId }: { readonly tokenIds: readonly number[]; readonly userId: number },
  secrets: Secrets,
): Promise<{ readonly tokenId: number; readonly key: string }[]> {
  const rows = await db
    .selectFrom('tokens')
    .select(['id', 'key_cipher'])
    .where('id', 'in', tokenIds)
    .where('user_id', '=', userId)
    .where('deleted_time', 'is', null)
    .orderBy('id')
    .execute()
  return rows.map(({ id, key_cipher }) => ({
    tokenId: id,
    key: unseal(secrets, key_cipher, { table: 'tokens', row: id }),
  }))
}
