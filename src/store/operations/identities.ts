import type { ManagedUser, NewUser, UserRow } from '../../domain/records/user.ts'
import { type Secrets, tagOf } from '../secrets.ts'
import { managedUserFromRow } from '../user-rows.ts'
import { createUser } from './create-user.ts'
import type { Db } from './operation.ts'
import { liveUser } from './find-accounts.ts'

/** Maximum number of used states that one sign-in removes. */
const MAX_REMOVED = 1_000

/** Identity at a provider of OpenID Connect. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
}

/** Finds the user of an identity; null if there is none. */
export async function userByIdentity(db: Db, identity: Identity): Promise<ManagedUser | null> {
  const row = await userOfIdentity(db, identity)
  return row ? managedUserFromRow(row) : null
}

/** Reads the row of an identity's user; undefined if there is none. */
export async function userOfIdentity(db: Db, { issuer, subject }: Identity): Promise<UserRow | undefined> {
  const found = await db
    .selectFrom('identities')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return found && liveUser(db, found.user_id)
}

/** Identity of a user. */
export interface LinkedIdentity extends Identity {
  /** Unix seconds. */
  readonly created_time: number
}

/** Lists the identities of a user, the oldest first. */
export async function identitiesOf(db: Db, userId: number): Promise<readonly LinkedIdentity[]> {
  return db
    .selectFrom('identities')
    .select(['issuer', 'subject', 'created_time as created_time'])
    .where('user_id', '=', userId)
    .orderBy('created_time')
    .orderBy('issuer')
    .orderBy('subject')
    .execute()
}

/**
 * Creates the user of an identity. Resolves to the existing one if another sign-in has just created it. Like
 * `createUser`, refuses the name of another user: an identity is never linked to a user by name.
 */
export async function createUserOfIdentity(
  db: Db,
  { identity, user }: { readonly identity: Identity; readonly user: NewUser },
  secrets: Secrets,
): Promise<ManagedUser> {
  const present = await userOfIdentity(db, identity)
  if (present) return managedUserFromRow(present)
  const { id } = await createUser(db, user, secrets)
  await db
    .insertInto('identities')
    .values({ ...identity, user_id: id, created_time: user.created_time })
    .execute()
  const row = await db
    .updateTable('users')
    .set({ oidc_id: identity.subject })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return managedUserFromRow(row)
}

/** Removes the identities of a user. */
export async function removeIdentitiesOf(db: Db, userId: number): Promise<void> {
  await db.deleteFrom('identities').where('user_id', '=', userId).execute()
}

/**
 * Marks the state of a sign-in as used; resolves to whether it was unused. Also removes expired states,
 * because the table grows only here.
 */
export async function markStateUsed(
  db: Db,
  {
    state,
    expiresTime,
    nowSeconds,
  }: { readonly state: string; readonly expiresTime: number; readonly nowSeconds: number },
  secrets: Secrets,
): Promise<boolean> {
  await db
    .deleteFrom('used_states')
    .where('hash', 'in', (eb) =>
      eb.selectFrom('used_states').select('hash').where('expires_time', '<=', nowSeconds).limit(MAX_REMOVED),
    )
    .execute()
  const inserted = await db
    .insertInto('used_states')
    .values({ hash: tagOf(secrets, 'state', state), expires_time: expiresTime })
    .onConflict((conflict) => conflict.column('hash').doNothing())
    .executeTakeFirst()
  return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n
}
