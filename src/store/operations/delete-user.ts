import type { UserRow } from '../schema.ts'
import type { Db } from './operation.ts'
import { liveUser } from './profile.ts'
import { refuseLastRoot, refuseRole } from './refuse-user.ts'
import { endSessionsOf } from './sessions.ts'

/**
 * Marks a user and all its tokens as deleted; its sessions, its password and its access token are gone. The
 * row stays, as what was charged belongs to it, under a name that tells so: its own may be given to another
 * user. False if there is no such user.
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
    .set({
      deleted_time: deletedTime,
      access_token_hash: null,
      password_hash: null,
      username: await nameOfDeleted(db, row),
      first_username: row.first_username ?? row.username,
    })
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

/** `ann (deleted 7)`, or with a number behind it where a user goes by that name. */
async function nameOfDeleted(db: Db, { id, username }: UserRow): Promise<string> {
  const plain = `${username} (deleted ${id})`
  for (let name = plain, more = 2; ; name = `${plain} ${more++}`) {
    const taken = await db.selectFrom('users').select('id').where('username', '=', name).executeTakeFirst()
    if (!taken) return name
  }
}
