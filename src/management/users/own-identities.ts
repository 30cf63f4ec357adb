import { z } from 'zod'
import type { VerifiedIdentity } from '../../accounts/authentication/oidc/oidc-client.ts'
import type { IdentityLink } from '../../accounts/authentication/oidc/pending-sign-in.ts'
import type { User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Identity } from '../../store/operations/sign-ins.ts'
import type { ManagementParts } from '../parts.ts'

/** Identities of a user; times are Unix seconds. `docs/api.md: Linked identities`. */
export const identitiesSchema = z.array(
  z.object({
    issuer: z.string(),
    subject: z.string(),
    provider: z.string().describe('Name of the provider; empty where it is no longer configured'),
    created_time: z.int(),
  }),
)

/** The identities of a user, oldest first. */
export async function ownIdentities(
  { store, settings }: Pick<ManagementParts, 'store' | 'settings'>,
  { id }: User,
): Promise<z.output<typeof identitiesSchema>> {
  const names = new Map(settings().login.oidc.map(({ issuer, name }) => [issuer, name]))
  const identities = await store.read('identitiesOf', id)
  return identities.map(({ issuer, subject, created_time }) => ({
    issuer,
    subject,
    provider: names.get(issuer) ?? '',
    created_time,
  }))
}

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

/**
 * Removes an identity from a user, and ends all sessions of the user except that of the request. Throws 404
 * if the user does not have the identity, and 400 if there is no other way to sign in.
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
