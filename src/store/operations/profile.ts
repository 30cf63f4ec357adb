import type { ManagedUser, Profile } from '../../domain/profile.ts'
import type { UserRow } from '../schema.ts'
import { managedUserFromRow, profileFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Everything of a user that its owner may see; null if there is none of that id, or no longer. */
export async function profile(db: Db, { userId }: { readonly userId: number }): Promise<Profile | null> {
  const row = await liveUser(db, userId)
  return row ? profileFromRow(row) : null
}

/** Everything of a user that an administrator may see; null if there is none of that id, or no longer. */
export async function managedUser(
  db: Db,
  { userId }: { readonly userId: number },
): Promise<ManagedUser | null> {
  const row = await liveUser(db, userId)
  return row ? managedUserFromRow(row) : null
}

/** The row of a user who is not deleted. */
export function liveUser(db: Db, userId: number): Promise<UserRow | undefined> {
  return db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', userId)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
}
