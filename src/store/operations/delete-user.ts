import type { UserRow } from '../../domain/records/user.ts'
import type { Db } from './operation.ts'
import { removeIdentitiesOf } from './identities.ts'
import { liveUser } from './find-accounts.ts'
import { refuseLastRoot, refuseRole } from './refuse-user.ts'
import { endSessionsOf } from './sessions.ts'

/**
 * Marks a user and all its tokens as deleted; removes its sessions, identities, password and access token.
 * False if there is no such user. The row stays because charges refer to it, but under another name, so that
 * the username becomes free.
 */
export async function deleteUser(
  db: Db,
  user: {
    readonly userId: number
    /** Unix seconds. */
    readonly deleted_time: number
    /** Refuses with `role_too_low` unless the user's role is below this; undefined allows any role. */
    readonly roleBelow?: number | undefined
  },
): Promise<boolean> {
  const { userId, deleted_time } = user
  const row = await liveUser(db, userId)
  if (!row) return false
  refuseRole(row, user.roleBelow)
  await refuseLastRoot(db, row)
  await db
    .updateTable('users')
    .set({
      deleted_time,
      access_token_hash: null,
      password_hash: null,
      username: await nameOfDeleted(db, row),
      first_username: row.first_username ?? row.username,
      comparable_name: null,
    })
    .where('id', '=', userId)
    .execute()
  await db
    .updateTable('tokens')
    .set({ deleted_time })
    .where('user_id', '=', userId)
    .where('deleted_time', 'is', null)
    .execute()
  // Rows without content stay, because a background call may have to be charged by one.
  await db
    .deleteFrom('stored_responses')
    .where('user_id', '=', userId)
    .where('content_cipher', 'is not', null)
    .execute()
  await db.deleteFrom('kept_signatures').where('user_id', '=', userId).execute()
  await db.deleteFrom('kept_sums').where('user_id', '=', userId).execute()
  await removeIdentitiesOf(db, userId)
  await endSessionsOf(db, userId)
  return true
}

/** Builds a name such as `ann (deleted 7)`, with a number appended if it is taken. */
async function nameOfDeleted(db: Db, { id, username }: UserRow): Promise<string> {
  const plain = `${username} (deleted ${id})`
  for (let name = plain, more = 2; ; name = `${plain} ${more++}`) {
    const taken = await db.selectFrom('users').select('id').where('username', '=', name).executeTakeFirst()
    if (!taken) return name
  }
}
