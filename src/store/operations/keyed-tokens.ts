import type { Token, TokenRow } from '../../domain/records/token.ts'
import { ownTokens } from '../live-rows.ts'
import { type Secrets, unseal } from '../secrets.ts'
import { tokenFromRow } from '../token-rows.ts'
import type { Db } from './operation.ts'

/** Live token and its plain key without `sk-`, which must be masked before it is shown. */
export interface KeyedToken {
  readonly token: Token
  readonly key: string
}

/** Page of a user's tokens. */
interface TokenPageQuery {
  readonly userId: number
  readonly offset: number
  readonly limit: number
}

/** Converts a stored token, decrypting its key. */
export function keyedFromRow(row: TokenRow, secrets: Secrets): KeyedToken {
  return { token: tokenFromRow(row), key: keyOf(row.key_cipher, row.id, secrets) }
}

function keyOf(cipher: string, tokenId: number, secrets: Secrets): string {
  return unseal(secrets, cipher, { table: 'tokens', row: tokenId })
}

/** Reads a live token of a user; null if there is none with this id. */
export async function keyedToken(
  db: Db,
  { tokenId, userId }: { readonly tokenId: number; readonly userId: number },
  secrets: Secrets,
): Promise<KeyedToken | null> {
  const row = await ownTokens(db, userId).selectAll().where('id', '=', tokenId).executeTakeFirst()
  return row ? keyedFromRow(row, secrets) : null
}

/** Lists all live tokens of a user, newest first. */
export async function keyedTokens(
  db: Db,
  { userId }: { readonly userId: number },
  secrets: Secrets,
): Promise<KeyedToken[]> {
  const rows = await ownTokens(db, userId).selectAll().orderBy('id', 'desc').execute()
  return rows.map((row) => keyedFromRow(row, secrets))
}

/** Lists live tokens of a user among these ids, newest first. */
export async function keyedTokensOf(
  db: Db,
  { userId, tokenIds }: { readonly userId: number; readonly tokenIds: readonly number[] },
  secrets: Secrets,
): Promise<KeyedToken[]> {
  const rows = await ownTokens(db, userId)
    .where('id', 'in', tokenIds)
    .selectAll()
    .orderBy('id', 'desc')
    .execute()
  return rows.map((row) => keyedFromRow(row, secrets))
}

/**
 * Lists the names of a user's live tokens, newest first, without their keys, which would take time to
 * decrypt.
 */
export function ownTokenNames(
  db: Db,
  { userId }: { readonly userId: number },
): Promise<{ readonly id: number; readonly name: string }[]> {
  return ownTokens(db, userId).select(['id', 'name']).orderBy('id', 'desc').execute()
}

/** Lists the names of a user's live tokens with their keys, newest first. */
export async function ownTokenKeys(
  db: Db,
  { userId }: { readonly userId: number },
  secrets: Secrets,
): Promise<readonly { readonly id: number; readonly name: string; readonly key: string }[]> {
  const rows = await ownTokens(db, userId)
    .select(['id', 'name', 'key_cipher'])
    .orderBy('id', 'desc')
    .execute()
  return rows.map(({ key_cipher: cipher, ...row }) => ({ ...row, key: keyOf(cipher, row.id, secrets) }))
}

/** Reads a page of a user's live tokens, newest first, and their total number. */
export async function keyedTokenPage(
  db: Db,
  page: TokenPageQuery,
  secrets: Secrets,
): Promise<{ readonly total: number; readonly tokens: readonly KeyedToken[] }> {
  const { total } = await ownTokens(db, page.userId)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const rows = await pageOfTokens(db, page).selectAll().execute()
  return { total, tokens: rows.map((row) => keyedFromRow(row, secrets)) }
}

/** Selects a page of a user's live tokens, newest first. */
export function pageOfTokens(db: Db, { userId, offset, limit }: TokenPageQuery) {
  return ownTokens(db, userId).orderBy('id', 'desc').limit(limit).offset(offset)
}
