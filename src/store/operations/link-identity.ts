import { USER_STATUS } from '../../domain/records/user.ts'
import type { Identity } from './identities.ts'
import type { Db } from './operation.ts'
import { liveSession } from './sessions.ts'

/** Result of `linkIdentity`. */
export type LinkOutcome = 'linked' | 'session over' | 'taken'

/**
 * Links an identity to a user, if the session that began this still belongs to the user. An identity of
 * another user stays there. Linking twice changes nothing.
 */
export async function linkIdentity(
  db: Db,
  {
    identity,
    userId,
    sessionHash,
    nowSeconds,
  }: {
    readonly identity: Identity
    readonly userId: number
    readonly sessionHash: string
    readonly nowSeconds: number
  },
): Promise<LinkOutcome> {
  const session = await liveSession(db, { sessionHash, nowSeconds })
  if (session?.user.id !== userId || session.user.status !== USER_STATUS.enabled) return 'session over'
  await db
    .insertInto('identities')
    .values({ ...identity, user_id: userId, created_time: nowSeconds })
    .onConflict((conflict) => conflict.columns(['issuer', 'subject']).doNothing())
    .execute()
  const owner = await db
    .selectFrom('identities')
    .select('user_id')
    .where('issuer', '=', identity.issuer)
    .where('subject', '=', identity.subject)
    .executeTakeFirstOrThrow()
  if (owner.user_id !== userId) return 'taken'
  await db.updateTable('users').set({ oidc_id: identity.subject }).where('id', '=', userId).execute()
  return 'linked'
}
