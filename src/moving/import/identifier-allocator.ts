import { foldCase } from '../../domain/username.ts'
import type { TakenIdentifiers } from '../../store/operations/taken-identifiers.ts'
import type { ReadUser } from './plan-users.ts'

const ROOT = 100

/** Turns keys and access tokens into what they are found by here. */
export interface Hashes {
  key(key: string): string
  accessToken(token: string): string
}

/** Somebody who has a name already. */
type NamedUser = TakenIdentifiers['users'][number] & {
  /** Of this import, and not there before. */
  readonly isNew?: true
}

/**
 * Which ids, names and keys are free. Ids of the source are kept where they are; where they are not, a row
 * takes one above all ids on both sides.
 */
export class IdentifierAllocator {
  readonly #hashes: Hashes
  readonly #users: Map<string, NamedUser>
  /** The names of those who are not deleted, by what they are without their case. */
  readonly #withoutCase: Map<string, string>
  readonly #accessTokens: Set<string>
  readonly #userIds: Set<number>
  readonly #tokenIds: Set<number>
  readonly #keys: Set<string>
  #nextUserId: number
  #nextTokenId: number

  constructor(
    taken: TakenIdentifiers,
    hashes: Hashes,
    wanted: { readonly userIds: readonly number[]; readonly tokenIds: readonly number[] },
  ) {
    this.#hashes = hashes
    this.#users = new Map(taken.users.map((user) => [user.username, user]))
    const live = taken.users.filter(({ isDeleted }) => !isDeleted)
    this.#withoutCase = new Map(live.map(({ username }) => [foldCase(username), username]))
    this.#accessTokens = new Set(taken.users.flatMap((user) => user.accessTokenHash ?? []))
    this.#userIds = new Set(taken.users.map(({ id }) => id))
    this.#tokenIds = new Set(taken.tokens.map(({ id }) => id))
    this.#keys = new Set(taken.tokens.map(({ keyHash }) => keyHash))
    this.#nextUserId = firstIdAbove(taken.users, wanted.userIds)
    this.#nextTokenId = firstIdAbove(taken.tokens, wanted.tokenIds)
  }

  /** Somebody who may do everything is here, or would be. */
  get hasRoot(): boolean {
    return [...this.#users.values()].some(({ role, isDeleted }) => role === ROOT && !isDeleted)
  }

  /** The user who has, or had, that name here. */
  userNamed(username: string): NamedUser | undefined {
    return this.#users.get(username)
  }

  /** The name of a user here that differs from that one in case alone, or not at all. */
  similarName(username: string): string | undefined {
    return this.#withoutCase.get(foldCase(username))
  }

  /**
   * Takes an id for a user, its own if that is free; an access token that somebody has is not taken twice.
   */
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
    this.#withoutCase.set(foldCase(username), username)
    this.#users.set(username, { id, username, group, role, isDeleted: false, accessTokenHash, isNew: true })
    return { id, accessToken: isOwn ? accessToken : null }
  }

  /** Takes an id for a token in the same way; undefined if another token has that key. */
  allocateToken(wanted: number, key: string): number | undefined {
    const keyHash = this.#hashes.key(key)
    if (this.#keys.has(keyHash)) return undefined
    const isFree = wanted > 0 && !this.#tokenIds.has(wanted)
    const id = isFree ? wanted : this.newTokenId()
    this.#keys.add(keyHash)
    this.#tokenIds.add(id)
    return id
  }

  #newUserId(): number {
    const id = this.#nextUserId
    this.#nextUserId += 1
    return id
  }

  /** An id for a token that none has on either side. */
  newTokenId(): number {
    const id = this.#nextTokenId
    this.#nextTokenId += 1
    return id
  }
}

function firstIdAbove(taken: readonly { readonly id: number }[], wanted: readonly number[]): number {
  return Math.max(0, ...[taken.map(({ id }) => id), wanted].map(largest)) + 1
}

// Not by spreading: there may be more of them than a call can have arguments.
function largest(ids: readonly number[]): number {
  return ids.reduce((most, id) => Math.max(most, id), 0)
}
