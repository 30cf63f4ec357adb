import type { NewUser } from '../../domain/records/user.ts'
import { columnsOfNewUser, takenBy } from './create-user.ts'
import { inChunks } from './in-chunks.ts'
import type { Db } from './operation.ts'
import { refuseNames } from './refuse-name.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'

/** Rows in one statement. */
const MAX_ROWS = 500

/**
 * Creates users as `createUser` does, in a few statements whatever their number. Returns their ids in the
 * order given.
 */
export async function createUsers(db: Db, users: readonly NewUser[], secrets: Secrets): Promise<number[]> {
  if (users.length === 0) return []
  await refuseNames(
    db,
    users.map(({ username }) => username),
  )
  const hashed = users.map((user) => ({
    user,
    hash: user.accessToken === null ? null : hashAccessToken(secrets, user.accessToken),
  }))
  await refuseTaken(db, hashed)
  const ids = await newIds(db, users)
  const rows = hashed.map(({ user, hash }, index) => ({ ...columnsOfNewUser(user, hash), id: ids[index] }))
  for (let start = 0; start < rows.length; start += MAX_ROWS)
    await db
      .insertInto('users')
      .values(rows.slice(start, start + MAX_ROWS))
      .execute()
  return ids
}

/** Ids in order: the declared ones, and otherwise the one after the largest. */
async function newIds(db: Db, users: readonly NewUser[]): Promise<number[]> {
  const { last } = await db
    .selectFrom('users')
    .select((eb) => eb.fn.max('id').as('last'))
    .executeTakeFirstOrThrow()
  let largest = last ?? 0
  const given = new Map<number, NewUser>()
  return users.map((user) => {
    const id = user.id ?? largest + 1
    const other = given.get(id)
    if (other) throw takenBy(user, { id, username: other.username })
    given.set(id, user)
    largest = Math.max(largest, id)
    return id
  })
}

async function refuseTaken(
  db: Db,
  users: readonly { readonly user: NewUser; readonly hash: string | null }[],
): Promise<void> {
  const columns = ['id', 'username', 'access_token_hash'] as const
  const from = db.selectFrom('users').select(columns)
  const ids = users.flatMap(({ user }) => (user.id === undefined ? [] : [user.id]))
  const hashes = users.flatMap(({ hash }) => (hash === null ? [] : [hash]))
  const names = users.map(({ user }) => user.username)
  const taken = [
    ...(await inChunks(names, (some) => from.where('username', 'in', some).execute())),
    ...(await inChunks(ids, (some) => from.where('id', 'in', some).execute())),
    ...(await inChunks(hashes, (some) => from.where('access_token_hash', 'in', some).execute())),
  ]
  if (taken.length === 0) return
  const byName = new Map(taken.map((other) => [other.username, other]))
  const byId = new Map(taken.map((other) => [other.id, other]))
  const byHash = new Map(taken.map((other) => [other.access_token_hash, other]))
  for (const { user, hash } of users) {
    const other =
      byName.get(user.username) ??
      (user.id === undefined ? undefined : byId.get(user.id)) ??
      (hash === null ? undefined : byHash.get(hash))
    if (other) throw takenBy(user, other)
  }
}
