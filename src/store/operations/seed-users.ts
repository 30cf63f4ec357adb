import { type NewToken, TOKEN } from '../../domain/records/token.ts'
import type { NewUser, UserSeed } from '../../domain/records/user.ts'
import { generateKey } from '../generate-key.ts'
import { hashKey, type Secrets } from '../secrets.ts'
import { operatorTermsOfNew } from '../term-columns.ts'
import { createTokens, refuseTakenKey } from './create-token.ts'
import { createUsers } from './create-users.ts'
import { type ColumnChanges, declaredChanges, type NewTokenSeed } from './declared-changes.ts'
import { inChunks } from './in-chunks.ts'
import type { Db } from './operation.ts'
import { type PresentAccounts, presentAccounts } from './present-accounts.ts'
import { endSessionsOf } from './sessions.ts'

/** Users and tokens that seeding created. */
export interface SeedResult {
  readonly users: readonly { readonly id: number; readonly username: string }[]
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
  const present = await presentAccounts(db, seeds, secrets)
  const { users, tokens, enabled, newUsers, newTokens } = declaredChanges(present, seeds)
  await change(db, 'users', users)
  for (const id of enabled) await endSessionsOf(db, id)
  await change(db, 'tokens', tokens)
  const ids = await createUsers(
    db,
    newUsers.map((seed) => newUser(seed, nowSeconds)),
    secrets,
  )
  await refuseTakenKeys(db, present, newTokens, secrets)
  const made = newUsers.map(({ username }, index) => ({ id: ids[index] ?? 0, username }))
  const idOf = new Map(made.map(({ id, username }) => [username, id]))
  const wanted = newTokens.map(({ seed, userId, username }) =>
    newToken(userId ?? idOf.get(username) ?? 0, seed, nowSeconds),
  )
  const tokenIds = await createTokens(db, wanted, secrets)
  return {
    users: made,
    tokens: wanted.map(({ user_id: userId, name }, index) => ({ id: tokenIds[index] ?? 0, userId, name })),
  }
}

/** Changes rows: those that change alike, in one statement. */
async function change(
  db: Db,
  table: 'users' | 'tokens',
  changes: ReadonlyMap<number, ColumnChanges>,
): Promise<void> {
  const alike = Map.groupBy(changes, ([, columns]) => JSON.stringify(columns))
  for (const rows of alike.values()) {
    const [, columns] = rows[0] ?? [0, {}]
    await inChunks(
      rows.map(([id]) => id),
      (ids) => db.updateTable(table).set(columns).where('id', 'in', ids).execute(),
    )
  }
}

async function refuseTakenKeys(
  db: Db,
  present: PresentAccounts,
  tokens: readonly NewTokenSeed[],
  secrets: Secrets,
): Promise<void> {
  for (const { seed } of tokens)
    if (seed.key !== undefined && present.holderOf(seed.key))
      await refuseTakenKey(db, seed.name, hashKey(secrets, seed.key))
}

function newUser({ access_token, status, ...seed }: UserSeed, nowSeconds: number): NewUser {
  return { ...seed, status: status ?? 1, accessToken: access_token ?? null, created_time: nowSeconds }
}

function newToken(
  userId: number,
  { key, status, terms, ...seed }: NewTokenSeed['seed'],
  nowSeconds: number,
): NewToken {
  return {
    ...seed,
    ...terms,
    operator_terms: operatorTermsOfNew(terms ?? {}, { ...TOKEN.defaults, ...seed }),
    user_id: userId,
    key: key ?? generateKey(),
    status: status ?? 1,
    created_time: nowSeconds,
  }
}

/** Indexes of the declarations for which `seedUsers` would change something. */
export async function pendingSeeds(
  db: Db,
  { seeds }: { readonly seeds: readonly UserSeed[] },
  secrets: Secrets,
): Promise<number[]> {
  const present = await presentAccounts(db, seeds, secrets)
  return seeds.flatMap((seed, index) => {
    const { users, tokens, newUsers, newTokens } = declaredChanges(present, [seed])
    return users.size + tokens.size + newUsers.length + newTokens.length > 0 ? [index] : []
  })
}
