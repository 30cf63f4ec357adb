import type { VerifiedIdentity } from '../../accounts/authentication/oidc/oidc-client.ts'
import type { OidcProvider } from '../../domain/login-settings.ts'
import { isOfType } from '../../domain/records/field-types.ts'
import { type ManagedUser, USER, USER_STATUS } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'
import { changedRights, type DirectoryRights, directoryRights } from './directory-rights.ts'
import { noteRefusal, type SignInPlace, startSession } from './log-in.ts'

type IdentityParts = Pick<ManagementParts, 'store' | 'ledger' | 'apiKeys' | 'nowMs'>

/**
 * Starts a session for a person identified by an identity provider. The user is found by issuer and subject
 * only; a first sign-in creates one if the provider's settings allow that. Group and role follow the
 * directory at every sign-in. Throws 403 for a disabled user, or one that cannot be created.
 */
export async function signInByIdentity(
  parts: IdentityParts,
  provider: OidcProvider,
  identity: VerifiedIdentity,
  place: SignInPlace,
): Promise<{ readonly user: ManagedUser; readonly session: string }> {
  try {
    return await sessionFor(parts, provider, identity, place)
  } catch (error) {
    await noteRefusal(parts, error, undefined)
    throw error
  }
}

async function sessionFor(
  parts: IdentityParts,
  provider: OidcProvider,
  identity: VerifiedIdentity,
  place: SignInPlace,
): Promise<{ readonly user: ManagedUser; readonly session: string }> {
  const { issuer, subject, logoutUrl } = identity
  const rights = directoryRights(provider, identity.claims)
  const found =
    (await parts.store.read('userByIdentity', { issuer, subject })) ??
    (await createdUser(parts, provider, identity, rights))
  if (found.status !== USER_STATUS.enabled)
    throw new GatewayError('user_disabled', 'this user has been banned')
  const user = await withRights(parts, found, rights)
  const proof = { kind: 'identity', issuer, subject, logoutUrl } as const
  const session = await startSession(parts, user.id, proof, place)
  if (session === undefined) throw refusal('the user was changed meanwhile; start again')
  return { user, session }
}

async function withRights(
  { ledger, apiKeys }: IdentityParts,
  user: ManagedUser,
  rights: DirectoryRights,
): Promise<ManagedUser> {
  const fields = changedRights(user, rights)
  if (Object.keys(fields).length === 0) return user
  const changed = await ledger.changeUser({ userId: user.id, fields })
  apiKeys.forgetUser(user.id)
  return changed ?? user
}

async function createdUser(
  { store, nowMs }: IdentityParts,
  { name, create, usernameClaim }: OidcProvider,
  { issuer, subject, claims }: VerifiedIdentity,
  { group, role }: DirectoryRights,
): Promise<ManagedUser> {
  if (!create) throw refusal(`no user here belongs to your account at "${name}"; ask an administrator`)
  const { [usernameClaim]: username, name: displayName } = claims
  if (!isOfType(USER.fields.username.type, username))
    throw refusal(`the claim "${usernameClaim}" that "${name}" sends is missing, or no username`)
  try {
    return await store.write('createUserOfIdentity', {
      identity: { issuer, subject },
      user: {
        username,
        display_name: isOfType(USER.fields.display_name.type, displayName) ? displayName : undefined,
        role: role ?? Role.user,
        status: USER_STATUS.enabled,
        group: group ?? 'default',
        quota: 0,
        accessToken: null,
        created_time: Math.floor(nowMs() / 1000),
      },
    })
  } catch (error) {
    // Another sign-in of the same person, possibly on another node, may have been first.
    const present = await store.read('userByIdentity', { issuer, subject })
    if (present) return present
    // The name is taken or imitates another one: its holder at the provider may not be the user here.
    if (error instanceof GatewayError && error.code === 'invalid_request')
      throw refusal(`${error.message}; ${WAY_OUT}`)
    throw error
  }
}

const WAY_OUT =
  'ask an administrator for a user with another name, sign in as that user, and link your account to it'

function refusal(sentence: string): GatewayError {
  return new GatewayError('sign_in_refused', sentence)
}
