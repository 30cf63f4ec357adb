import { type Actor, roleCeiling } from '../authority.ts'
import { noUser } from './find-user.ts'
import type { ManagementParts } from '../parts.ts'

/**
 * Marks a user as deleted: its keys, its access token and its sessions are refused from the next call on;
 * running calls go on. Its usage log and charges stay.
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
