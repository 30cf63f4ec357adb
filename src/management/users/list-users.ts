import type { ManagementParts } from '../parts.ts'
import { type UserObject, userObject } from './user-object.ts'

/** All users, oldest first. */
export async function listUsers({ store }: ManagementParts): Promise<UserObject[]> {
  return (await store.read('listUsers')).map(userObject)
}
