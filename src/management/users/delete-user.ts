import type { z } from 'zod'
import { type Actor, OPERATOR, roleCeiling } from '../authority.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput, userInput } from '../read-input.ts'
import { findUser, noUser } from './find-user.ts'

/**
 * Marks a user as deleted. The user's keys, access token and sessions are refused from the next call on;
 * running calls continue. The usage log and charges stay.
 */
export async function deleteUser(
  { store, apiKeys, nowMs }: ManagementParts,
  userId: number,
  by: Actor,
): Promise<undefined> {
  const deleted_time = Math.floor(nowMs() / 1000)
  const isGone = await store.write('deleteUser', { userId, deleted_time, roleBelow: roleCeiling(by) })
  if (!isGone) noUser(userId)
  apiKeys.forgetUser(userId)
}

/** Deletes a user on behalf of the operator; refuses to delete the last user with role 100. */
export async function removeUser(
  parts: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<{ readonly id: number; readonly username: string }> {
  const { id, username } = await findUser(parts.store, readInput(userInput, given).user)
  await deleteUser(parts, id, OPERATOR)
  return { id, username }
}
