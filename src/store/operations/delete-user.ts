import type { Db } from './operation.ts'
import { liveUser } from './profile.ts'
import { refuseLastRoot, refuseRole } from './refuse-user.ts'
import { endSessionsOf } from './sessions.ts'

/**
 * Marks a user and all its tokens as deleted; its sessions, its password and its access token are gone. The row stays, as
 * what was charged belongs to it, and so does its name. False if there is no such user.
 */
export async function deleteUser(
  db: Db,
  user: {
    readonly userId: number
    /** Unix seconds. */
    readonly deletedTime: number
    /** Refused with `role_too_low` unless the user's role is below this; undefined = whoever it is. */
    readonly roleBelow?: number | undefined
  },
): Promise<boolean> {
  const { userId, deletedTime } = user
  const row = await liveUser(db, userId)
  if (!row) return false
  refuseRole(row, user.roleBelow)
  await refuseLastRoot(db, row)
  await db
    .updateTable('users')
    .set({ deleted_time: deletedTime, access_token_hash: null, password_hash: null })
    .where('id', '=', userId)
    .execute()
  await db
    .updateTable('tokens')
    .set({ deleted_time: deletedTime })
    .where('user_id', '=', userId)
    .where('deleted_time', 'is', null)
    .execute()
  await endSessionsOf(db, userId)
  return true
}
