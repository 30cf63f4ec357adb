import type { ManagementParts } from '../parts.ts'
import { type UserObject, userObjects } from './user-object.ts'

/** All users, oldest first. */
export async function listUsers(parts: ManagementParts): Promise<UserObject[]> {
  return userObjects(parts, await parts.store.read('listUsers'))
}
