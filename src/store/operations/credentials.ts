import type { ManagedUser } from '../../domain/records/user.ts'
import { managedUserFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** User and password hash; null = no password was ever set. Must not be logged or sent. */
export interface Credentials {
  readonly user: ManagedUser
  readonly passwordHash: string | null
}

/** Reads the credentials of the user with this name; null if there is none. */
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

/** Tells whether any user has an imported hash of bcrypt. */
export async function hasBcryptPasswords(db: Db): Promise<boolean> {
  const row = await db
    .selectFrom('users')
    .select('id')
    .where('password_hash', 'like', '$2%')
    .where('deleted_time', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
