import type { z } from 'zod'
import { type ManagedUser, USER_STATUS, type User } from '../../domain/records/user.ts'
import { type Actor, OPERATOR, roleCeiling } from '../authority.ts'
import { findUser, noUser } from './find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { userInput, readInput } from '../read-input.ts'
import { type UserObject, userObject } from './user-object.ts'

/** Disables a user: all its keys are refused from the next call on; running calls go on. */
export async function disableUser(
  parts: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<UserObject> {
  const { id } = await findUser(parts.store, readInput(userInput, given).user)
  return userObject(parts, await setStatus(parts, id, USER_STATUS.disabled, OPERATOR))
}

/** Enables a user. */
export async function enableUser(
  parts: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<UserObject> {
  const { id } = await findUser(parts.store, readInput(userInput, given).user)
  return userObject(parts, await setStatus(parts, id, USER_STATUS.enabled, OPERATOR))
}

/**
 * Sets a status on behalf of an actor. A status declared in gateway.yaml is restored when the file is next
 * read.
 */
export async function setStatus(
  { ledger, apiKeys }: ManagementParts,
  userId: number,
  status: User['status'],
  by: Actor,
): Promise<ManagedUser> {
  const user = await ledger.changeUser({ userId, fields: { status }, roleBelow: roleCeiling(by) })
  apiKeys.forgetUser(userId)
  return user ?? noUser(userId)
}
