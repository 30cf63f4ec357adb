import type { VerifiedIdentity } from '../../auth/oidc/oidc-client.ts'
import type { IdentityLink } from '../../auth/oidc/pending-sign-in.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'

/**
 * Links a verified identity to the user whose session began the sign-in. Throws 401 if that session has
 * ended, and 403 if the identity belongs to another user.
 */
export async function linkIdentity(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  { issuer, subject }: VerifiedIdentity,
  link: IdentityLink,
): Promise<void> {
  const nowSeconds = Math.floor(nowMs() / 1000)
  const outcome = await store.write('linkIdentity', { identity: { issuer, subject }, ...link, nowSeconds })
  switch (outcome) {
    case 'linked':
      return
    case 'session over':
      throw new GatewayError('unauthorized', 'the session that began this has ended: log in again')
    case 'taken':
      throw new GatewayError('sign_in_refused', 'this identity belongs to another user here')
  }
}
