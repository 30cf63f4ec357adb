import type { Expression, ExpressionBuilder, SqlBool } from 'kysely'
import { TOKEN_STATUS, type TokenStatus } from '../../domain/records/token.ts'
import type { Database } from '../row-types.ts'
import { tokenFromRow } from '../account-rows.ts'
import { hashKeyEnd, type Secrets } from '../secrets.ts'
import { decryptTokenKey, type TokenOrder, type TokenWithKey } from './find-accounts.ts'
import type { Db } from './operation.ts'

/** A search among the tokens of all users. Absent fields match everything. */
export interface TokenFilter {
  /** Part of the name, in upper or lower case. */
  readonly name?: string | undefined
  /** The id of the user, or a part of its username, in upper or lower case. */
  readonly user?: string | undefined
  /** The group that the calls of the token use: its own, or else its user's. */
  readonly group?: string | undefined
  readonly status?: TokenStatus | undefined
  /** The last four characters of the key. `tagKeyEnds` must have run, or keys of earlier versions are not found. */
  readonly end?: string | undefined
}

/** A page of a search among the tokens that an administrator manages. */
interface TokensOfAll extends TokenFilter {
  /** Only tokens of users whose role is below `role`, and of the user `self`; undefined for all. */
  readonly within: { readonly role: number; readonly self: number } | undefined
  readonly offset: number
  readonly limit: number
  /** Newest tokens first if not given. */
  readonly order?: TokenOrder | undefined
  readonly nowMs: number
}

/** A token with the name of its user. The key must be masked before it is shown. */
export interface TokenOfUser extends TokenWithKey {
  readonly username: string
}

/** Reads these tokens with the names of their users, in the given order. Unknown ids are left out. */
export async function tokensWithOwners(
  db: Db,
  { tokenIds }: { readonly tokenIds: readonly number[] },
  secrets: Secrets,
): Promise<readonly TokenOfUser[]> {
  if (tokenIds.length === 0) return []
  const rows = await db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .selectAll('tokens')
    .select('users.username')
    .where('tokens.id', 'in', tokenIds)
    .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return tokenIds.flatMap((id) => {
    const row = byId.get(id)
    if (!row) return []
    const key = decryptTokenKey(row.key_cipher, id, secrets)
    return { token: tokenFromRow(row), key, username: row.username }
  })
}

/** Finds the ids of a page of the matching tokens that are not deleted, and the number of all that match. */
export async function matchingTokens(
  db: Db,
  search: TokensOfAll,
  secrets: Secrets,
): Promise<{ readonly total: number; readonly ids: readonly number[] }> {
  const { name, user, offset, limit } = search
  const matching = filtered(db, search, secrets)
  const ordered = inOrder(matching, search)
  if (name === undefined && user === undefined) {
    const [{ total }, rows] = [
      await matching.select((eb) => eb.fn.countAll<number>().as('total')).executeTakeFirstOrThrow(),
      await ordered.select('tokens.id').limit(limit).offset(offset).execute(),
    ]
    return { total, ids: rows.map(({ id }) => id) }
  }
  // Compared in the program, because databases differ in case conversion beyond ASCII.
  const rows = await ordered
    .select(['tokens.id', 'tokens.name', 'tokens.user_id', 'users.username'])
    .execute()
  const isIn = (text: string, part = ''): boolean => text.toLowerCase().includes(part.toLowerCase())
  const ids = rows
    .filter((row) => isIn(row.name, name) && (String(row.user_id) === user || isIn(row.username, user)))
    .map(({ id }) => id)
  return { total: ids.length, ids: ids.slice(offset, offset + limit) }
}

function filtered(db: Db, { within, group, status, end, nowMs }: TokensOfAll, secrets: Secrets) {
  let query = db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .where('tokens.deleted_time', 'is', null)
  if (within)
    query = query.where((eb) => eb.or([eb('users.role', '<', within.role), eb('users.id', '=', within.self)]))
  if (group !== undefined)
    query = query.where((eb) =>
      eb.or([
        eb('tokens.group_name', '=', group),
        eb.and([eb('tokens.group_name', '=', ''), eb('users.group_name', '=', group)]),
      ]),
    )
  if (status !== undefined) query = query.where((eb) => hasStatus(eb, status, nowMs))
  return end === undefined ? query : query.where('tokens.key_end', '=', hashKeyEnd(secrets, end))
}

/** The condition under which `tokenStatusAt` returns this status. */
function hasStatus(
  eb: ExpressionBuilder<Database, 'tokens' | 'users'>,
  status: TokenStatus,
  nowMs: number,
): Expression<SqlBool> {
  const disabled = eb('tokens.status', '=', TOKEN_STATUS.disabled)
  const expired = eb.and([
    eb('tokens.expired_time', '<>', -1),
    eb('tokens.expired_time', '<=', Math.floor(nowMs / 1000)),
  ])
  const exhausted = eb.and([eb('tokens.unlimited_quota', '=', 0), eb('tokens.remain_quota', '<=', 0)])
  switch (status) {
    case TOKEN_STATUS.disabled:
      return disabled
    case TOKEN_STATUS.expired:
      return eb.and([eb.not(disabled), expired])
    case TOKEN_STATUS.exhausted:
      return eb.and([eb.not(disabled), eb.not(expired), exhausted])
    case TOKEN_STATUS.enabled:
      return eb.not(eb.or([disabled, expired, exhausted]))
  }
}

function inOrder(query: ReturnType<typeof filtered>, { order }: TokensOfAll) {
  const direction = order?.isAscending ? 'asc' : 'desc'
  const sorted = order ? query.orderBy(`tokens.${order.by}`, direction) : query
  return sorted.orderBy('tokens.id', direction)
}
