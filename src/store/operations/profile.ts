import type { ManagedUser, UserRow } from '../../domain/records/user.ts'
import { managedUserFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Reads all that people manage of a user; null if there is none with this id. */
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
