import type { z } from 'zod'
import { USER_STATUS, type User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import { findUser, noUser } from './find-user.ts'
import type { ManagementParts } from './parts.ts'
import { ofUser, readInput } from './read-input.ts'
import { type UserObject, userObject } from './user-object.ts'

/** Every key of the user is refused from the next call on; calls under way go on. */
export function disableUser(parts: ManagementParts, given: z.input<typeof ofUser>): Promise<UserObject> {
  return setStatus(parts, given, USER_STATUS.disabled)
}

/** The user's keys work again. */
export function enableUser(parts: ManagementParts, given: z.input<typeof ofUser>): Promise<UserObject> {
  return setStatus(parts, given, USER_STATUS.enabled)
}

async function setStatus(
  { store, apiKeys, seeds }: ManagementParts,
  given: z.input<typeof ofUser>,
  status: User['status'],
): Promise<UserObject> {
  const { user: who } = readInput(ofUser, given)
  const { id, username } = await findUser(store, who)
  const declared = seeds().find((seed) => seed.username === username)?.status
  if (declared !== undefined && declared !== status) {
    throw new GatewayError(
      'invalid_request',
      `the status of the user "${username}" is declared in gateway.yaml, and applied at every reading: change it there`,
    )
  }
  const user = (await store.write('setUserStatus', { userId: id, status })) ?? noUser(who)
  apiKeys.forgetUser(id)
  return userObject(user)
}
