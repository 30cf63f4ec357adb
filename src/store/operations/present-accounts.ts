import type { UserSeed } from '../../domain/records/user.ts'
import type { TermColumns } from '../../domain/records/terms.ts'
import { hashKey, type Secrets } from '../secrets.ts'
import { inChunks } from './in-chunks.ts'
import type { Db } from './operation.ts'

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
] as const

/** Columns that a declaration may change, of a user or a token. */
interface PresentRow extends TermColumns {
  readonly id: number
  readonly status: number
  readonly deleted_time: number | null
  /** Only tokens have it. */
  readonly operator_terms?: string
}

/** Existing user to whom a declaration may refer. */
export interface PresentUser extends PresentRow {
  readonly username: string
  readonly first_username: string | null
}

/** Existing token to which a declaration may refer, or which has its key. */
export interface PresentToken extends PresentRow {
  readonly user_id: number
  readonly name: string
  readonly key_hash: string
}

/** Users and tokens to which declarations may refer. */
export class PresentAccounts {
  readonly users: readonly PresentUser[]
  readonly tokens: readonly PresentToken[]
  readonly #byName: ReadonlyMap<string, PresentUser>
  readonly #byFirstName: ReadonlyMap<string, PresentUser>
  readonly #byKey: ReadonlyMap<string, PresentToken>
  readonly #byTokenName: ReadonlyMap<string, readonly PresentToken[]>

  readonly #hashes: ReadonlyMap<string, string>

  /** `hashes` contains the hash of each declared key. */
  constructor(
    users: readonly PresentUser[],
    tokens: readonly PresentToken[],
    hashes: ReadonlyMap<string, string>,
  ) {
    this.#hashes = hashes
    this.users = users.toSorted((a, b) => a.id - b.id)
    this.tokens = tokens
    // Of several users that once had a name, the oldest is the declared one.
    const reversed = this.users.toReversed()
    this.#byName = new Map(reversed.map((user) => [user.username, user]))
    this.#byFirstName = new Map(
      reversed.flatMap((user) => (user.first_username === null ? [] : [[user.first_username, user]])),
    )
    this.#byKey = new Map(tokens.map((token) => [token.key_hash, token]))
    this.#byTokenName = Map.groupBy(tokens, (token) => nameOf(token.user_id, token.name))
  }

  /**
   * The user with a declared name. Prefers the original name: a later user with that name is a different one.
   */
  userOf(username: string): PresentUser | undefined {
    return this.#byFirstName.get(username) ?? this.#byName.get(username)
  }

  /** Tokens of a user by name, and by key because the user may have renamed the token. */
  tokensOf(userId: number, name: string, key: string | undefined): readonly PresentToken[] {
    const named = this.#byTokenName.get(nameOf(userId, name)) ?? []
    const keyed = key === undefined ? undefined : this.holderOf(key)
    return keyed?.user_id === userId && !named.includes(keyed) ? [...named, keyed] : named
  }

  /** The token that has a key, of any user. */
  holderOf(key: string): PresentToken | undefined {
    const hash = this.#hashes.get(key)
    return hash === undefined ? undefined : this.#byKey.get(hash)
  }
}

/** Reads the users and tokens to which declarations may refer, in a few statements for any number of them. */
export async function presentAccounts(
  db: Db,
  seeds: readonly UserSeed[],
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
    .select([...COLUMNS, 'user_id', 'name', 'key_hash', 'operator_terms'])
  const hashes = new Map(
    seeds.flatMap(({ tokens }) =>
      tokens.flatMap(({ key }) => (key === undefined ? [] : [[key, hashKey(secrets, key)] as const])),
    ),
  )
  const keyed = await inChunks([...hashes.values()], (some) =>
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

/** Rows without those that several statements found. */
function byId<Row extends { readonly id: number }>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()]
}

function nameOf(userId: number, name: string): string {
  return `${userId} ${name}`
}
