import type { TokenSeed, UserSeed } from '../../domain/seed.ts'
import { USER_STATUS, type User } from '../../domain/user.ts'
import { generateKey } from '../generate-key.ts'
import { hashKey, type Secrets } from '../secrets.ts'
import { termColumns } from '../term-columns.ts'
import { createToken, type NewToken } from './create-token.ts'
import { createUser, type NewUser } from './create-user.ts'
import type { Db } from './operation.ts'
import { endSessionsOf } from './sessions.ts'

/** Users and tokens that seeding created. */
export interface SeedResult {
  readonly users: readonly User[]
  readonly tokens: readonly { readonly id: number; readonly userId: number; readonly name: string }[]
}

/**
 * Creates declared users that are missing, by their original name, and their declared tokens that are
 * missing, by name and by key, all or none. A deleted user or token counts as present, even if its name was
 * given to another user. Existing rows stay unchanged, except for a declared status, budget and rate limit.
 */
export async function seedUsers(
  db: Db,
  { seeds, nowSeconds }: { readonly seeds: readonly UserSeed[]; readonly nowSeconds: number },
  secrets: Secrets,
): Promise<SeedResult> {
  const users: User[] = []
  const tokens: { id: number; userId: number; name: string }[] = []
  for (const seed of seeds) {
    const present = await applyToPresentUser(db, seed)
    if (present?.deleted) continue
    let userId = present?.id
    if (userId === undefined) {
      const user = await createUser(db, newUser(seed, nowSeconds), secrets)
      users.push(user)
      userId = user.id
    }
    for (const tokenSeed of seed.tokens) {
      if (await applyToPresentToken(db, userId, tokenSeed, secrets)) continue
      const token = await createToken(db, newToken(userId, tokenSeed, nowSeconds), secrets)
      tokens.push({ id: token.id, userId, name: token.name })
    }
  }
  return { users, tokens }
}

async function applyToPresentUser(
  db: Db,
  seed: UserSeed,
): Promise<{ readonly id: number; readonly deleted: boolean } | undefined> {
  const user = await db
    .selectFrom('users')
    .select(['id', 'status', 'deleted_time'])
    // Prefers the original name: a later user with the declared name is not the declared user.
    .where((eb) => eb.or([eb('username', '=', seed.username), eb('first_username', '=', seed.username)]))
    .orderBy((eb) => eb.case().when('first_username', '=', seed.username).then(0).else(1).end())
    .orderBy('id')
    .executeTakeFirst()
  if (user && seed.status !== undefined && seed.status !== user.status) {
    await db.updateTable('users').set({ status: seed.status }).where('id', '=', user.id).execute()
    // Sessions from before the user was disabled must not become valid again.
    if (seed.status === USER_STATUS.enabled) await endSessionsOf(db, user.id)
  }
  const terms = termColumns(seed.terms ?? {})
  if (user && Object.keys(terms).length > 0)
    await db.updateTable('users').set(terms).where('id', '=', user.id).execute()
  return user && { id: user.id, deleted: user.deleted_time !== null }
}

async function applyToPresentToken(
  db: Db,
  userId: number,
  { name, key, status, terms: declared = {} }: TokenSeed,
  secrets: Secrets,
): Promise<boolean> {
  const present = await db
    .selectFrom('tokens')
    .select('id')
    .where('user_id', '=', userId)
    // Matches by key too, because the user may have renamed the token.
    .where((eb) =>
      eb.or([
        eb('name', '=', name),
        ...(key === undefined ? [] : [eb('key_hash', '=', hashKey(secrets, key))]),
      ]),
    )
    .execute()
  const changes = { ...(status !== undefined && { status }), ...termColumns(declared) }
  if (present.length > 0 && Object.keys(changes).length > 0) {
    const ids = present.map(({ id }) => id)
    await db
      .updateTable('tokens')
      .set(changes)
      .where('id', 'in', ids)
      .where('deleted_time', 'is', null)
      .execute()
  }
  return present.length > 0
}

function newUser({ accessToken, status, ...seed }: UserSeed, nowSeconds: number): NewUser {
  return { ...seed, status: status ?? 1, accessToken: accessToken ?? null, createdTime: nowSeconds }
}

function newToken(userId: number, { key, status, terms, ...seed }: TokenSeed, nowSeconds: number): NewToken {
  return {
    ...seed,
    ...terms,
    userId,
    key: key ?? generateKey(),
    status: status ?? 1,
    createdTime: nowSeconds,
  }
}
