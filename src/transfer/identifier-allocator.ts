import { importedKeyHash } from '../domain/api-key.ts'
import { Role } from '../domain/role.ts'
import { comparableName } from '../domain/username.ts'
import { MAX_IMPORTED_NUMBER } from './amounts.ts'
import type { TakenIdentifiers } from '../store/operations/find-accounts.ts'
import type { ImportedToken } from '../store/operations/seed-accounts.ts'
import type { UserToImport } from './plan-users.ts'

/** Functions that hash a key or an access token for its lookup in this gateway. */
export interface IdentifierHashes {
  /** Every hash under which the key may be stored. */
  keys(key: string): readonly string[]
  accessToken(token: string): string
}

/** A key, or the digest of one. */
type KeyToImport = Pick<ImportedToken, 'key' | 'key_form'>

/** A user whose name is taken. */
type NamedUser = TakenIdentifiers['users'][number] & {
  /** Whether the user is added by this import. */
  readonly isNew?: true
}

/**
 * Allocates ids, names and keys for imported rows. A row keeps its id if that is free; otherwise it gets an
 * id above all ids of the source and of this gateway.
 */
export class IdentifierAllocator {
  readonly #hashes: IdentifierHashes
  readonly #users: Map<string, NamedUser>
  /** Names of users that are not deleted, by their comparable form, which ignores case (`comparableName`). */
  readonly #byComparableName: Map<string, string>
  readonly #accessTokens: Set<string>
  readonly #userIds: Set<number>
  readonly #tokenIds: Set<number>
  readonly #keys: Set<string>
  #nextUserId: number
  #nextTokenId: number

  constructor(
    taken: TakenIdentifiers,
    hashes: IdentifierHashes,
    wanted: { readonly userIds: readonly number[]; readonly tokenIds: readonly number[] },
  ) {
    this.#hashes = hashes
    this.#users = new Map(taken.users.map((user) => [user.username, user]))
    const live = taken.users.filter(({ isDeleted }) => !isDeleted)
    this.#byComparableName = new Map(live.map(({ username }) => [comparableName(username), username]))
    this.#accessTokens = new Set(taken.users.flatMap((user) => user.accessTokenHash ?? []))
    this.#userIds = new Set(taken.users.map(({ id }) => id))
    this.#tokenIds = new Set(taken.tokens.map(({ id }) => id))
    this.#keys = new Set(taken.tokens.map(({ keyHash }) => keyHash))
    this.#nextUserId = firstIdAbove(taken.users, wanted.userIds)
    this.#nextTokenId = firstIdAbove(taken.tokens, wanted.tokenIds)
  }

  /** Whether a root user exists, or is added by this import. */
  get hasRoot(): boolean {
    return [...this.#users.values()].some(({ role, isDeleted }) => role === Role.root && !isDeleted)
  }

  /** Finds the user of this gateway that has, or had, exactly this name. */
  userNamed(username: string): NamedUser | undefined {
    return this.#users.get(username)
  }

  /**
   * Finds the name of a user of this gateway that counts as equal to `username`, although it may be written
   * differently.
   */
  similarName(username: string): string | undefined {
    return this.#byComparableName.get(comparableName(username))
  }

  /** Allocates an id for a user. Drops the access token if another user has the same token. */
  allocateUser(
    wanted: number,
    { username, group, role, accessToken }: UserToImport,
  ): { readonly id: number; readonly accessToken: string | null } {
    const isFree = wanted > 0 && !this.#userIds.has(wanted)
    const id = isFree ? wanted : this.#newUserId()
    const accessTokenHash = accessToken === null ? null : this.#hashes.accessToken(accessToken)
    const isOwn = accessTokenHash !== null && !this.#accessTokens.has(accessTokenHash)
    this.#userIds.add(id)
    if (isOwn) this.#accessTokens.add(accessTokenHash)
    this.#byComparableName.set(comparableName(username), username)
    this.#users.set(username, { id, username, group, role, isDeleted: false, accessTokenHash, isNew: true })
    return { id, accessToken: isOwn ? accessToken : null }
  }

  /** Whether a token of this gateway or of this import has the key. */
  hasKey(token: KeyToImport): boolean {
    return this.#hashesOf(token).some((hash) => this.#keys.has(hash))
  }

  /** Allocates an id for a token. The key must be free. */
  allocateToken(wanted: number, token: KeyToImport): number {
    const isFree = wanted > 0 && !this.#tokenIds.has(wanted)
    const id = isFree ? wanted : this.newTokenId()
    for (const hash of this.#hashesOf(token)) this.#keys.add(hash)
    this.#tokenIds.add(id)
    return id
  }

  #hashesOf({ key, key_form }: KeyToImport): readonly string[] {
    return key_form === 'digest' ? [importedKeyHash(key)] : this.#hashes.keys(key)
  }

  #newUserId(): number {
    const id = this.#nextUserId
    this.#nextUserId += 1
    return id
  }

  /** Allocates a token id that is used neither in the source nor in this gateway. */
  newTokenId(): number {
    const id = this.#nextTokenId
    this.#nextTokenId += 1
    return id
  }
}

function firstIdAbove(taken: readonly { readonly id: number }[], wanted: readonly number[]): number {
  return Math.max(0, ...[taken.map(({ id }) => id), wanted].map(largest)) + 1
}

// `Math.max(...ids)` would fail, because a function call cannot have this many arguments. Rows with too large
// ids are refused elsewhere.
function largest(ids: readonly number[]): number {
  return ids.reduce((max, id) => (id > MAX_IMPORTED_NUMBER ? max : Math.max(max, id)), 0)
}
