import { type NewToken, TOKEN, type TokenSeed } from '../../domain/records/token.ts'
import { type NewUser, USER_STATUS, type UserSeed } from '../../domain/records/user.ts'
import { generateKey } from '../generate-key.ts'
import { hashKey, type Secrets } from '../secrets.ts'
import { declaredTermColumns, operatorTermsOfNew } from '../term-columns.ts'
import { createTokens, refuseTakenKey } from './create-token.ts'
import { createUsers } from './create-user.ts'
import { inChunks } from './in-chunks.ts'
import type { Db } from './operation.ts'
import {
  type PresentAccounts,
  presentAccounts,
  type PresentToken,
  type PresentUser,
} from './present-accounts.ts'
import { endSessionsOf } from './sessions.ts'

/** Users and tokens that seeding created. */
export interface SeedResult {
  readonly users: readonly { readonly id: number; readonly username: string }[]
  readonly tokens: readonly { readonly id: number; readonly userId: number; readonly name: string }[]
}

/**
 * Creates all missing declared users and tokens, or none of them. Users are matched by their original name,
 * tokens by name and by key. A deleted user or token counts as existing, even if its name was given to another
 * user. Existing rows change only in their declared status, budget and rate limit.
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

/** Changes rows; rows with the same changes in one statement. */
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

/** Columns that change, of one row. */
type ColumnChanges = Readonly<Record<string, string | number>>

/** Changes that declarations make in a database. */
interface DeclaredChanges {
  /** Changes of existing rows, by id. */
  readonly users: ReadonlyMap<number, ColumnChanges>
  readonly tokens: ReadonlyMap<number, ColumnChanges>
  /** Users who are enabled: sessions from before they were disabled must not become valid again. */
  readonly enabled: ReadonlySet<number>
  readonly newUsers: readonly UserSeed[]
  /** Missing tokens; `userId` is undefined if the user is new. */
  readonly newTokens: readonly NewTokenSeed[]
}

/** Declared token that is missing. */
interface NewTokenSeed {
  readonly seed: TokenSeed
  readonly userId: number | undefined
  readonly username: string
}

/**
 * Compares declarations with the existing rows. A deleted user or token counts as existing, even if its name
 * was given to another user. Existing rows change only in their declared status, budget and rate limit.
 */
function declaredChanges(present: PresentAccounts, seeds: readonly UserSeed[]): DeclaredChanges {
  const users = new RowChanges()
  const tokens = new RowChanges()
  const enabled = new Set<number>()
  const newUsers: UserSeed[] = []
  const newTokens: NewTokenSeed[] = []
  for (const seed of seeds) {
    const user = present.userOf(seed.username)
    if (!user) {
      newUsers.push(seed)
      for (const token of seed.tokens)
        newTokens.push({ seed: token, userId: undefined, username: seed.username })
      continue
    }
    const changed = users.declare(user, seed)
    if (changed.has('status') && seed.status === USER_STATUS.enabled) enabled.add(user.id)
    if (user.deleted_time !== null) continue
    for (const token of seed.tokens) {
      const same = present.tokensOf(user.id, token.name, token.key)
      if (same.length === 0) newTokens.push({ seed: token, userId: user.id, username: seed.username })
      for (const one of same) if (one.deleted_time === null) tokens.declare(one, token)
    }
  }
  return { users: users.changes, tokens: tokens.changes, enabled, newUsers, newTokens }
}

/** Changes of rows. Several declarations may refer to the same row; the last one counts. */
class RowChanges {
  readonly changes = new Map<number, ColumnChanges>()

  /** Adds a declaration. Returns the names of the columns that it changes. */
  declare(
    row: PresentUser | PresentToken,
    { status, terms }: Pick<UserSeed | TokenSeed, 'status' | 'terms'>,
  ): ReadonlySet<string> {
    const before = this.changes.get(row.id) ?? {}
    const now: Readonly<Record<string, unknown>> = { ...row, ...before }
    const wanted = { ...(status !== undefined && { status }), ...(terms && declaredTermColumns(terms, row)) }
    const changed = Object.entries(wanted).filter(([name, value]) => now[name] !== value)
    if (changed.length > 0) this.changes.set(row.id, { ...before, ...Object.fromEntries(changed) })
    return new Set(changed.map(([name]) => name))
  }
}
