import { sql } from 'kysely'
import type { ContentLogColumns } from '../../domain/records/content-log.ts'
import { type NewToken, TOKEN, type DeclaredToken } from '../../domain/records/token.ts'
import { type NewUser, USER_STATUS, type DeclaredUser, type ManagedUser } from '../../domain/records/user.ts'
import { columnsOfDeletedToken } from '../account-rows.ts'
import { generateKey, keyHashes, type Secrets } from '../secrets.ts'
import { declaredContentColumns } from '../content-log-columns.ts'
import {
  type DeclaredTokenRow,
  declaredUsageLimitColumns,
  operatorLimitsOfNewToken,
} from '../usage-limit-columns.ts'
import { type ImportedBudgetUse, openBudgets } from './budgets.ts'
import { createTokens, refuseTakenKey, refuseTakenKeys } from './tokens.ts'
import { createUsers, createUser, endSessionsOf } from './users.ts'
import { inChunks, type Db } from './operation.ts'
import type { TokenGrants } from '../../domain/usage-limits.ts'
import type { UsageLimitColumns } from '../../domain/records/usage-limits.ts'
import { dimensionValuesOfCall, NO_DIMENSION, USAGE_SUMS_KEY, SUM_KINDS } from '../sum-kinds.ts'

/** Users and tokens that were created from declarations in gateway.yaml. */
interface SeedResult {
  readonly users: readonly { readonly id: number; readonly username: string }[]
  readonly tokens: readonly { readonly id: number; readonly userId: number; readonly name: string }[]
}

/**
 * Creates all declared users and tokens that are missing, or none of them. Users are matched by their
 * original name, tokens by name and by key. A deleted user or token counts as existing, even if its name was
 * given to another user. Existing rows change only in their declared status, budget, rate limit and content
 * log.
 */
export async function seedUsers(
  db: Db,
  { seeds, nowSeconds }: { readonly seeds: readonly DeclaredUser[]; readonly nowSeconds: number },
  secrets: Secrets,
): Promise<SeedResult> {
  const present = await readSeededAccounts(db, seeds, secrets)
  const { users, tokens, enabled, newUsers, newTokens } = declaredChanges(present, seeds)
  await change(db, 'users', users)
  for (const id of enabled) await endSessionsOf(db, id)
  await change(db, 'tokens', tokens)
  const ids = await createUsers(
    db,
    newUsers.map((seed) => newUser(seed, nowSeconds)),
    secrets,
  )
  await refuseDeclaredKeysOfOthers(db, present, newTokens, secrets)
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

/** Changes rows of a table. Rows that get the same values are changed by one statement. */
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

async function refuseDeclaredKeysOfOthers(
  db: Db,
  present: PresentAccounts,
  tokens: readonly NewTokenSeed[],
  secrets: Secrets,
): Promise<void> {
  for (const { seed } of tokens)
    if (seed.key !== undefined && present.holderOf(seed.key))
      await refuseTakenKey(db, seed.name, keyHashes(secrets, seed.key))
}

function newUser({ access_token, status, ...seed }: DeclaredUser, nowSeconds: number): NewUser {
  return { ...seed, status: status ?? 1, accessToken: access_token ?? null, created_time: nowSeconds }
}

function newToken(
  userId: number,
  { key, status, limits, ...seed }: NewTokenSeed['seed'],
  nowSeconds: number,
): NewToken {
  return {
    ...seed,
    ...limits,
    operator_terms: operatorLimitsOfNewToken(limits ?? {}, { ...TOKEN.defaults, ...seed }),
    user_id: userId,
    key: key ?? generateKey(),
    status: status ?? 1,
    created_time: nowSeconds,
  }
}

/** Returns the indexes of the declarations for which `seedUsers` would change something. */
export async function pendingDeclaredUsers(
  db: Db,
  { seeds }: { readonly seeds: readonly DeclaredUser[] },
  secrets: Secrets,
): Promise<number[]> {
  const present = await readSeededAccounts(db, seeds, secrets)
  return seeds.flatMap((seed, index) => {
    const { users, tokens, newUsers, newTokens } = declaredChanges(present, [seed])
    return users.size + tokens.size + newUsers.length + newTokens.length > 0 ? [index] : []
  })
}

/** Columns of one row with their new values. */
type ColumnChanges = Readonly<Record<string, string | number | null>>

/** Changes in the database that follow from the declarations in gateway.yaml. */
interface DeclaredChanges {
  /** Changes of existing rows, by the id of the row. */
  readonly users: ReadonlyMap<number, ColumnChanges>
  readonly tokens: ReadonlyMap<number, ColumnChanges>
  /**
   * Ids of users who are enabled again. Their sessions must be ended, because sessions from before they were
   * disabled must not become valid again.
   */
  readonly enabled: ReadonlySet<number>
  readonly newUsers: readonly DeclaredUser[]
  /** Declared tokens that do not exist yet. `userId` is undefined if the user does not exist either. */
  readonly newTokens: readonly NewTokenSeed[]
}

/** A token declared in gateway.yaml that does not exist yet. */
interface NewTokenSeed {
  readonly seed: DeclaredToken
  readonly userId: number | undefined
  readonly username: string
}

/** Compares declarations in gateway.yaml with the existing rows, by the rules of `seedUsers`. */
function declaredChanges(present: PresentAccounts, seeds: readonly DeclaredUser[]): DeclaredChanges {
  const users = new RowChanges()
  const tokens = new RowChanges()
  const enabled = new Set<number>()
  const newUsers: DeclaredUser[] = []
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

/** Collects changes of rows. If several declarations change the same row, the last one counts. */
class RowChanges {
  readonly changes = new Map<number, ColumnChanges>()

  /** Adds a declaration for a row. Returns the names of the columns whose values it changes. */
  declare(
    row: PresentUser | PresentToken,
    seed: Pick<DeclaredUser | DeclaredToken, 'status' | 'limits' | keyof ContentLogColumns> &
      Partial<TokenGrants>,
  ): ReadonlySet<string> {
    const before = this.changes.get(row.id) ?? {}
    const { status, limits } = seed
    const now: Readonly<Record<string, unknown>> = { ...row, ...before }
    const wanted = {
      ...(status !== undefined && { status }),
      ...('operator_terms' in row
        ? declaredUsageLimitColumns(limits, row, seed)
        : declaredUsageLimitColumns(limits)),
      ...declaredContentColumns(seed),
    }
    const changed = Object.entries(wanted).filter(([name, value]) => now[name] !== value)
    if (changed.length > 0) this.changes.set(row.id, { ...before, ...Object.fromEntries(changed) })
    return new Set(changed.map(([name]) => name))
  }
}

const COLUMNS = [
  'id',
  'status',
  'deleted_time',
  'budget',
  'budget_period',
  'rate_limit_requests',
  'rate_limit_tokens',
  'rate_limit_parallel',
  'rate_limit_window',
  'content_log_what',
  'content_log_sample',
  'content_log_keep',
] as const

/** Columns of a user or token that a declaration in gateway.yaml may change. */
interface PresentRow extends UsageLimitColumns, ContentLogColumns {
  readonly id: number
  readonly status: number
  readonly deleted_time: number | null
}

/** An existing user that a declaration in gateway.yaml may refer to. */
interface PresentUser extends PresentRow {
  readonly username: string
  readonly first_username: string | null
}

/** An existing token that a declaration in gateway.yaml may refer to, or that has the declared key. */
interface PresentToken extends PresentRow, DeclaredTokenRow {
  readonly user_id: number
  readonly name: string
  readonly key_hash: string
}

/** The existing users and tokens that declarations in gateway.yaml may refer to. */
class PresentAccounts {
  readonly users: readonly PresentUser[]
  readonly tokens: readonly PresentToken[]
  readonly #byName: ReadonlyMap<string, PresentUser>
  readonly #byFirstName: ReadonlyMap<string, PresentUser>
  readonly #byKey: ReadonlyMap<string, PresentToken>
  readonly #byTokenName: ReadonlyMap<string, readonly PresentToken[]>

  readonly #hashes: ReadonlyMap<string, readonly string[]>

  /** `hashes` maps each declared API key to its possible hashes (`keyHashes`). */
  constructor(
    users: readonly PresentUser[],
    tokens: readonly PresentToken[],
    hashes: ReadonlyMap<string, readonly string[]>,
  ) {
    this.#hashes = hashes
    this.users = users.toSorted((a, b) => a.id - b.id)
    this.tokens = tokens
    // If several users have had the declared name, the oldest of them is meant. The list is reversed, so that
    // the oldest user is the last one entered in each map.
    const reversed = this.users.toReversed()
    this.#byName = new Map(reversed.map((user) => [user.username, user]))
    this.#byFirstName = new Map(
      reversed.flatMap((user) => (user.first_username === null ? [] : [[user.first_username, user]])),
    )
    this.#byKey = new Map(tokens.map((token) => [token.key_hash, token]))
    this.#byTokenName = Map.groupBy(tokens, (token) => nameOf(token.user_id, token.name))
  }

  /**
   * Finds the user with a name declared in gateway.yaml. A user who originally had the name takes precedence
   * over one who got it later.
   */
  userOf(username: string): PresentUser | undefined {
    return this.#byFirstName.get(username) ?? this.#byName.get(username)
  }

  /** Finds tokens of a user by name, and also by key, because the user may have renamed the token. */
  tokensOf(userId: number, name: string, key: string | undefined): readonly PresentToken[] {
    const named = this.#byTokenName.get(nameOf(userId, name)) ?? []
    const keyed = key === undefined ? undefined : this.holderOf(key)
    return keyed?.user_id === userId && !named.includes(keyed) ? [...named, keyed] : named
  }

  /** Finds the token with a key, whichever user owns it. */
  holderOf(key: string): PresentToken | undefined {
    for (const hash of this.#hashes.get(key) ?? []) {
      const holder = this.#byKey.get(hash)
      if (holder) return holder
    }
    return undefined
  }
}

/**
 * Reads the users and tokens that declarations in gateway.yaml may refer to. The number of statements does
 * not depend on the number of declarations.
 */
export async function readSeededAccounts(
  db: Db,
  seeds: readonly DeclaredUser[],
  secrets: Secrets,
): Promise<PresentAccounts> {
  const users = await inChunks(
    seeds.map(({ username }) => username),
    (names) =>
      db
        .selectFrom('users')
        .select([...COLUMNS, 'username', 'first_username'])
        .where((eb) => eb.or([eb('username', 'in', names), eb('first_username', 'in', names)]))
        .execute(),
  )
  const tokensFrom = db
    .selectFrom('tokens')
    .select([...COLUMNS, 'user_id', 'name', 'key_hash', 'operator_terms', 'remain_quota', 'used_quota'])
  const hashes = new Map(
    seeds.flatMap(({ tokens }) =>
      tokens.flatMap(({ key }) => (key === undefined ? [] : [[key, keyHashes(secrets, key)] as const])),
    ),
  )
  const keyed = await inChunks([...hashes.values()].flat(), (some) =>
    tokensFrom.where('key_hash', 'in', some).execute(),
  )
  const ofUsers = new PresentAccounts(users, [], hashes)
  const wanted = seeds.flatMap(({ username, tokens }) => {
    const user = ofUsers.userOf(username)
    return user ? tokens.map(({ name }) => ({ userId: user.id, name })) : []
  })
  const named = await inChunks(wanted, (some) =>
    tokensFrom
      .where('user_id', 'in', [...new Set(some.map(({ userId }) => userId))])
      .where('name', 'in', [...new Set(some.map(({ name }) => name))])
      .execute(),
  )
  return new PresentAccounts(byId(users), byId([...keyed, ...named]), hashes)
}

/** Removes the duplicates of rows that several statements found. */
function byId<Row extends { readonly id: number }>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()]
}

function nameOf(userId: number, name: string): string {
  return `${userId} ${name}`
}

/** Model and channel of imported usage in the daily sums, because the real ones are not known. */
const IMPORTED = '(imported)'

/** A user of another gateway, with the usage there. */
export type ImportedUser = NewUser &
  Pick<ManagedUser, 'id' | 'used_quota' | 'request_count'> &
  ImportedBudgetUse

/** A token of another gateway, with the usage there. */
export type ImportedToken = NewToken &
  ImportedBudgetUse & {
    readonly id: number
    readonly used_quota: number
    /** Whether an operator of the other gateway set its limits, which its holder cannot loosen here either. */
    readonly isByOperator?: boolean
  }

/** A new user with tokens, or tokens for an existing user. */
export interface ImportedAccount {
  readonly user: ImportedUser | undefined
  readonly tokens: readonly ImportedToken[]
  /**
   * Usage of the user through tokens that are not imported. It is recorded on a deleted token with this id.
   */
  readonly usedElsewhere: { readonly tokenId: number; readonly quota: number } | undefined
  /** Time of the import in Unix seconds. */
  readonly nowSeconds: number
}

/**
 * Creates a user with tokens, all or none. Adds the imported usage to the daily sums of the day of the
 * import, so that balances and sums match. Refuses the same inputs as `createUser` and `createToken`. Uses few
 * statements however many tokens there are, because other writes may wait until it has ended.
 */
export async function importAccount(
  db: Db,
  { user, tokens, usedElsewhere, nowSeconds }: ImportedAccount,
  secrets: Secrets,
): Promise<void> {
  if (user) await createUser(db, user, secrets)
  const unlisted =
    user && usedElsewhere
      ? [{ ...deletedToken(user, nowSeconds), id: usedElsewhere.tokenId, used_quota: usedElsewhere.quota }]
      : []
  const made: readonly ImportedToken[] = [...tokens, ...unlisted]
  await refuseTakenKeys(db, made, secrets)
  await createTokens(db, made.map(withOperatorLimits), secrets)
  const budgets = made.map((token) => ({ ...token, owner: `t:${token.id}` as const }))
  await openBudgets(db, user ? [{ ...user, owner: `u:${user.id}` }, ...budgets] : budgets, nowSeconds)
  await addImportedUsage(db, made, Math.floor(nowSeconds / 86_400))
  for (const { id } of unlisted)
    await db.updateTable('tokens').set(columnsOfDeletedToken(nowSeconds)).where('id', '=', id).execute()
}

function withOperatorLimits({ isByOperator, ...token }: ImportedToken): NewToken {
  if (!isByOperator) return token
  return { ...token, operator_terms: operatorLimitsOfNewToken(token, { ...TOKEN.defaults, ...token }) }
}

/** Maximum number of rows in one statement, because databases limit the number of parameters. */
const MAX_ROWS = 500

async function addImportedUsage(db: Db, tokens: readonly ImportedToken[], day: number): Promise<void> {
  // One statement cannot change a row twice.
  const sums = new Map<string, { readonly place: readonly (string | number)[]; quota: number }>()
  for (const { user_id, id: token_id, group = '', used_quota } of tokens) {
    if (used_quota <= 0) continue
    const values = {
      ...NO_DIMENSION,
      user_id,
      token_id,
      model: IMPORTED,
      channel: IMPORTED,
      group_name: group,
    }
    for (const kind of SUM_KINDS.filter(({ unit }) => unit === 'day')) {
      const place = [kind.kind, day, ...dimensionValuesOfCall(kind, values)]
      const name = JSON.stringify(place)
      const sum = sums.get(name) ?? { place, quota: 0 }
      sums.set(name, { place, quota: sum.quota + used_quota })
    }
  }
  const key = sql.join(USAGE_SUMS_KEY.map((name) => sql.ref(name)))
  const rows = [...sums.values()].map(({ place, quota }) => sql`(${sql.join([...place, quota])})`)
  const add = async (some: readonly (typeof rows)[number][]): Promise<[]> => {
    await sql`
      insert into usage_sums (${key}, quota) values ${sql.join(some)}
      on conflict (${key}) do update set quota = usage_sums.quota + excluded.quota`.execute(db)
    return []
  }
  await inChunks(rows, add, MAX_ROWS)
}

function deletedToken(
  { id, group }: ImportedUser,
  nowSeconds: number,
): Omit<ImportedToken, 'id' | 'used_quota'> {
  return {
    user_id: id,
    name: 'before the import',
    key: generateKey(),
    status: 2,
    created_time: nowSeconds,
    remain_quota: 0,
    group,
  }
}
