import { undeletedTokens } from '../account-rows.ts'
import { hashKeyEnd, KEY_END_LENGTH, type Secrets } from '../secrets.ts'
import type { Db } from './operation.ts'

/** Number of tokens read at a time. */
const SEARCHED_ROWS = 500

interface KeySearch {
  /** Undefined for the tokens of all users. */
  readonly userId: number | undefined
  readonly part: string
  readonly limit: number
}

/**
 * Finds tokens of one user or of all users: by a part of the name in upper or lower case, or by the last four
 * characters of the key; `end` is then these characters. `tagKeyEnds` must have run, or keys of earlier versions are not
 * found by them. Keys found by their end come first; otherwise newer tokens come first.
 */
export async function findKeys(
  db: Db,
  search: KeySearch,
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
  const { part, limit } = search
  const ended = part.length === KEY_END_LENGTH ? await keysWithEnd(db, search, secrets) : []
  const ids = new Set(ended.map(({ id }) => id))
  const named = ended.length < limit ? await keysNamed(db, search) : []
  const found = [
    ...ended.map((row) => ({ ...row, end: part })),
    ...named.filter(({ id }) => !ids.has(id)).map((row) => ({ ...row, end: '' })),
  ].slice(0, limit)
  if (found.length === 0) return []
  const owners = await db
    .selectFrom('users')
    .select(['id', 'username'])
    .where('id', 'in', [...new Set(found.map(({ owner }) => owner))])
    .execute()
  const names = new Map(owners.map(({ id, username }) => [id, username]))
  return found.map((row) => ({ ...row, username: names.get(row.owner) ?? '' }))
}

function keysWithEnd(db: Db, { part, limit, ...search }: KeySearch, secrets: Secrets) {
  return newestTokens(db, search).where('key_end', '=', hashKeyEnd(secrets, part)).limit(limit).execute()
}

async function keysNamed(db: Db, { part, limit, ...search }: KeySearch): Promise<FoundKey[]> {
  const sought = part.toLowerCase()
  const named: FoundKey[] = []
  let before = Number.MAX_SAFE_INTEGER
  while (named.length < limit) {
    const rows = await newestTokens(db, search).where('id', '<', before).limit(SEARCHED_ROWS).execute()
    named.push(...rows.filter(({ name }) => name.toLowerCase().includes(sought)))
    const last = rows.at(-1)
    if (!last || rows.length < SEARCHED_ROWS) break
    before = last.id
  }
  return named
}

interface FoundKey {
  readonly id: number
  readonly name: string
  readonly owner: number
}

function newestTokens(db: Db, { userId }: Pick<KeySearch, 'userId'>) {
  const query = undeletedTokens(db).select(['id', 'name', 'user_id as owner']).orderBy('id', 'desc')
  return userId === undefined ? query : query.where('user_id', '=', userId)
}
