import type { ManagedUser, Profile } from '../../domain/profile.ts'
import type { UserRow } from '../schema.ts'
import { managedUserFromRow, profileFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Reads what a user may see of itself; null if there is none with this id. */
export async function profile(db: Db, { userId }: { readonly userId: number }): Promise<Profile | null> {
  const row = await liveUser(db, userId)
  return row ? profileFromRow(row) : null
}

/** Reads what an administrator may see of a user; null if there is none with this id. */
export async function managedUser(
  db: Db,
  { userId }: { readonly userId: number },
): Promise<ManagedUser | null> {
  const row = await liveUser(db, userId)
  return row ? managedUserFromRow(row) : null
}

/** Reads the row of a user that is not deleted. */
export function liveUser(db: Db, userId: number): Promise<UserRow | undefined> {
  return db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', userId)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
}
