import type { ManagedUser, User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import { type Actor, requireManageable } from '../authority.ts'
import type { ManagementParts } from '../parts.ts'

/** The user with an id or a name; throws `not_found`. */
export async function findUser(store: Pick<Store, 'read'>, idOrName: number | string): Promise<User> {
  const user = await (typeof idOrName === 'number'
    ? store.read('userById', idOrName)
    : store.read('userByName', idOrName))
  return user ?? noUser(idOrName)
}

/** Throws `not_found` for a user. */
export function noUser(idOrName: number | string): never {
  const named = typeof idOrName === 'number' ? `with the id ${idOrName}` : `"${idOrName}"`
  throw new GatewayError('not_found', `there is no user ${named}`)
}

/** The user with an id, whose role must be below the actor's, or any user for root; throws otherwise. */
export async function manageableUser(
  { store }: Pick<ManagementParts, 'store'>,
  userId: number,
  by: Actor,
): Promise<ManagedUser> {
  const user = (await store.read('managedUser', { userId })) ?? noUser(userId)
  requireManageable(by, user)
  return user
}
