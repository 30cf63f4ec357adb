import type { User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Identity } from '../../store/operations/identities.ts'
import type { ManagementParts } from '../parts.ts'

/**
 * Takes an identity from a user and ends the user's sessions, all but the one that asks. Throws 404 if the
 * user does not have it, and 400 if there is no other way to sign in.
 */
export async function unlinkIdentity(
  { store, settings }: Pick<ManagementParts, 'store' | 'settings'>,
  { id: userId }: User,
  identity: Identity,
  keptSession: string | undefined,
): Promise<void> {
  const acceptsPasswords = settings().login.password
  const outcome = await store.write('unlinkIdentity', { identity, userId, keptSession, acceptsPasswords })
  switch (outcome) {
    case 'unlinked':
      return
    case 'unknown':
      throw new GatewayError('not_found', 'there is no such identity')
    case 'last way':
      throw new GatewayError(
        'invalid_request',
        'this identity is the only way to sign in to the account: set a password first, or create an access token',
      )
  }
}
