import type { Identity } from './identities.ts'
import type { Db } from './operation.ts'
import { endSessionsOf } from './sessions.ts'

/** Result of `unlinkIdentity`; `last way` means that the user could not sign in any more. */
export type UnlinkOutcome = 'unlinked' | 'unknown' | 'last way'

/**
 * Removes an identity from its user, unless the user could not sign in any more. Ends all sessions of the
 * user except one, because the identity may have begun them.
 */
export async function unlinkIdentity(
  db: Db,
  {
    identity: { issuer, subject },
    userId,
    keptSession,
    acceptsPasswords,
  }: {
    readonly identity: Identity
    readonly userId: number
    /** HMAC of the session that is kept. */
    readonly keptSession: string | undefined
    /** Whether a password can be used to sign in. */
    readonly acceptsPasswords: boolean
  },
): Promise<UnlinkOutcome> {
  const user = await db
    .selectFrom('users')
    .where('id', '=', userId)
    .select(['password_hash', 'access_token_hash'])
    .executeTakeFirstOrThrow()
  const all = await db
    .selectFrom('identities')
    .select(['issuer', 'subject'])
    .where('user_id', '=', userId)
    .orderBy('created_time', 'desc')
    .execute()
  const others = all.filter((one) => one.issuer !== issuer || one.subject !== subject)
  if (others.length === all.length) return 'unknown'
  const has_password = acceptsPasswords && user.password_hash !== null
  if (others.length === 0 && !has_password && user.access_token_hash === null) return 'last way'
  await db
    .deleteFrom('identities')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .where('user_id', '=', userId)
    .execute()
  const present = others[0]?.subject ?? ''
  await db.updateTable('users').set({ oidc_id: present }).where('id', '=', userId).execute()
  await endSessionsOf(db, userId, keptSession)
  return 'unlinked'
}
