import { Role } from '../domain/role.ts'
import { comparableName } from '../domain/username.ts'
import { MAX_IMPORTED } from './amounts.ts'
import type { TakenIdentifiers } from '../store/operations/find-accounts.ts'
import type { ReadUser } from './plan-users.ts'

/** Hashes by which this gateway looks up keys and access tokens. */
export interface IdentifierHashes {
  key(key: string): string
  accessToken(token: string): string
}

/** User that has a name already. */
type NamedUser = TakenIdentifiers['users'][number] & {
  /** True = planned by this import. */
  readonly isNew?: true
}

/**
 * Allocates ids, names and keys of imported rows. A row keeps the id of the source if it is free; otherwise
 * it gets one above all ids of both sides.
 */
export class IdentifierAllocator {
  readonly #hashes: IdentifierHashes
  readonly #users: Map<string, NamedUser>
  /** Names of users that are not deleted, by their comparable form. */
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

  /** Tells whether a root user exists, or is planned. */
  get hasRoot(): boolean {
    return [...this.#users.values()].some(({ role, isDeleted }) => role === Role.root && !isDeleted)
  }

  /** Finds the user who has, or had, that name here. */
  userNamed(username: string): NamedUser | undefined {
    return this.#users.get(username)
  }

  /** Finds the name of a user here that is equal as names are compared. */
  similarName(username: string): string | undefined {
    return this.#byComparableName.get(comparableName(username))
  }

  /** Allocates an id for a user; drops the access token if another user has the same. */
  allocateUser(
    wanted: number,
    { username, group, role, accessToken }: ReadUser,
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

  /** Tells whether a token here, or one that is planned, has this key. */
  hasKey(key: string): boolean {
    return this.#keys.has(this.#hashes.key(key))
  }

  /** Allocates an id for a token, whose key no other token has. */
  allocateToken(wanted: number, key: string): number {
    const isFree = wanted > 0 && !this.#tokenIds.has(wanted)
    const id = isFree ? wanted : this.newTokenId()
    this.#keys.add(this.#hashes.key(key))
    this.#tokenIds.add(id)
    return id
  }

  #newUserId(): number {
    const id = this.#nextUserId
    this.#nextUserId += 1
    return id
  }

  /** Allocates a token id that is free on both sides. */
  newTokenId(): number {
    const id = this.#nextTokenId
    this.#nextTokenId += 1
    return id
  }
}

function firstIdAbove(taken: readonly { readonly id: number }[], wanted: readonly number[]): number {
  return Math.max(0, ...[taken.map(({ id }) => id), wanted].map(largest)) + 1
}

// Not `Math.max(...ids)`: there may be more ids than a call can have arguments. Rows with larger ids are
// refused.
function largest(ids: readonly number[]): number {
  return ids.reduce((max, id) => (id > MAX_IMPORTED ? max : Math.max(max, id)), 0)
}
