import type { ManagedUser } from '../../domain/profile.ts'
import { managedUserFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** A user, and what a password is checked against; null = none was ever set. Not to be logged or sent. */
export interface Credentials {
  readonly user: ManagedUser
  readonly passwordHash: string | null
}

/** The credentials of the user of that name; null if there is none, or no longer. */
export async function credentials(
  db: Db,
  { username }: { readonly username: string },
): Promise<Credentials | null> {
  const row = await db
    .selectFrom('users')
    .selectAll()
    .where('username', '=', username)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return row ? { user: managedUserFromRow(row), passwordHash: row.password_hash } : null
}
