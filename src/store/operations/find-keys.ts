import { sql } from 'kysely'
import { undeletedTokens } from '../account-rows.ts'
import type { Secrets } from '../secrets.ts'
import { decryptTokenKey } from './find-accounts.ts'
import type { Db } from './operation.ts'

/** Number of last characters of a key by which the key can be found. */
const END_LENGTH = 4
/** Number of tokens read at a time. Decrypting their keys takes a few milliseconds. */
const SEARCHED_ROWS = 500
/** Maximum number of tokens whose keys one search decrypts; these are the newest ones. */
const MAX_DECRYPTED = 10_000

/**
 * Finds tokens of one user or of all users: by a part of the name in upper or lower case, or by the last four
 * characters of the key; `end` is then these characters. Keys are decrypted only if the search text has four
 * characters, and only those of the newest 10,000 tokens. Keys found by their end come first; otherwise newer
 * tokens come first.
 */
export async function findKeys(
  db: Db,
  {
    userId,
    part,
    limit,
  }: { readonly userId: number | undefined; readonly part: string; readonly limit: number },
  secrets: Secrets,
): Promise<
  readonly {
    readonly id: number
    readonly name: string
    readonly owner: number
    readonly username: string
    readonly end: string
  }[]
> {
  const sought = part.toLowerCase()
  let toDecrypt = part.length === END_LENGTH ? MAX_DECRYPTED : 0
  const ended: FoundKey[] = []
  const named: FoundKey[] = []
  let before = Number.MAX_SAFE_INTEGER
  while (ended.length < limit && (toDecrypt > 0 || named.length < limit)) {
    const rows = await searchedTokens(db, { userId, before, withKeys: toDecrypt > 0 })
    for (const { key_cipher: cipher, ...row } of rows) {
      if (toDecrypt > 0 && decryptTokenKey(cipher, row.id, secrets).endsWith(part))
        ended.push({ ...row, end: part })
      else if (named.length < limit && row.name.toLowerCase().includes(sought))
        named.push({ ...row, end: '' })
    }
    toDecrypt = Math.max(0, toDecrypt - rows.length)
    const last = rows.at(-1)
    if (!last || rows.length < SEARCHED_ROWS) break
    before = last.id
  }
  const found = [...ended, ...named].slice(0, limit)
  if (found.length === 0) return []
  const owners = await db
    .selectFrom('users')
    .select(['id', 'username'])
    .where('id', 'in', [...new Set(found.map(({ owner }) => owner))])
    .execute()
  const names = new Map(owners.map(({ id, username }) => [id, username]))
  return found.map((row) => ({ ...row, username: names.get(row.owner) ?? '' }))
}

interface FoundKey {
  readonly id: number
  readonly name: string
  readonly owner: number
  readonly end: string
}

/**
 * Reads tokens with lower ids than `before`, the newest first. Without `withKeys`, their keys are returned
 * empty.
 */
function searchedTokens(
  db: Db,
  {
    userId,
    before,
    withKeys,
  }: { readonly userId: number | undefined; readonly before: number; readonly withKeys: boolean },
) {
  let query = undeletedTokens(db).select(['id', 'name', 'user_id as owner'])
  if (userId !== undefined) query = query.where('user_id', '=', userId)
  return query
    .select(withKeys ? 'key_cipher' : sql<string>`''`.as('key_cipher'))
    .where('id', '<', before)
    .orderBy('id', 'desc')
    .limit(SEARCHED_ROWS)
    .execute()
}
