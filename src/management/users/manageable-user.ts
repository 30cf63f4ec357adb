import type { ManagedUser } from '../../domain/records/user.ts'
import { type Actor, requireManageable } from '../authority.ts'
import type { ManagementParts } from '../parts.ts'
import { noUser } from './find-user.ts'

/** The user of an id, whose role is below the actor's, or anybody for root; throws otherwise. */
export async function manageableUser(
  { store }: Pick<ManagementParts, 'store'>,
  userId: number,
  by: Actor,
): Promise<ManagedUser> {
  const user = (await store.read('managedUser', { userId })) ?? noUser(userId)
  requireManageable(by, user)
  return user
}
