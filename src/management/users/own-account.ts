import { z } from 'zod'
import type { VerifiedIdentity } from '../../accounts/authentication/oidc/oidc-client.ts'
import type { IdentityLink } from '../../accounts/authentication/oidc/pending-sign-in.ts'
import type { ManagedUser, User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Identity } from '../../store/operations/sign-ins.ts'
import { fairQueueKey } from '../authority.ts'
import type { ManagementServices } from '../services.ts'
import { requestBodySchemas, storedFields } from '../record-schemas.ts'
import { userNotFound } from './list-users.ts'
import {
  passwordToCheckField,
  keepAccessTokensOption,
  OWN_PROFILE_FIELDS,
  passwordField,
} from './user-object.ts'

/** Input with the fields that users may change about themselves; null counts as missing. */
export const ownProfileInput = z.object(
  {
    ...requestBodySchemas(OWN_PROFILE_FIELDS, 'change'),
    password: passwordField.nullish(),
    original_password: passwordToCheckField.nullish(),
    keep_access_tokens: keepAccessTokensOption.nullish(),
  },
  { error: 'expected an object with the fields to change' },
)

/**
 * Changes fields of the user's own account. A new password requires the current one; it ends all sessions of
 * the user, including `session`, and revokes the access token. A first password ends all sessions except
 * `session`, from which the request came.
 */
export async function changeOwnProfile(
  services: ManagementServices,
  { id: userId, username }: User,
  input: z.output<typeof ownProfileInput>,
  session: string | undefined,
): Promise<ManagedUser> {
  const { password, original_password: original } = input
  const change =
    typeof password === 'string' ? await newPassword(services, { userId, username }, password, original) : {}
  const user = await services.ledger.changeUser({
    userId,
    fields: { ...storedFields(OWN_PROFILE_FIELDS, input), passwordHash: change.passwordHash },
    passwordWas: change.passwordWas,
    remainingSession: change.passwordWas === null ? session : undefined,
    keepAccessTokens: input.keep_access_tokens ?? false,
  })
  return user ?? userNotFound(userId)
}

async function newPassword(
  { store, passwords }: ManagementServices,
  { userId, username }: { readonly userId: number; readonly username: string },
  password: string,
  original: string | null | undefined,
): Promise<{ readonly passwordHash?: string; readonly passwordWas?: string | null }> {
  const { passwordHash: passwordWas } =
    (await store.read('credentials', { username })) ?? userNotFound(username)
  const queue = fairQueueKey({ id: userId })
  if (passwordWas === null) return { passwordHash: await passwords.hash(password, queue), passwordWas }
  if (typeof original !== 'string' || !(await passwords.verify(passwordWas, original, queue))) {
    throw new GatewayError('invalid_request', 'original_password: expected your present password')
  }
  return { passwordHash: await passwords.hash(password, queue), passwordWas }
}

/** Sessions of a user, with times in Unix seconds. `docs/api.md: Sessions`. */
export const sessionsSchema = z.array(
  z.object({
    id: z.string(),
    created_time: z.int(),
    last_used: z.int().describe('To the minute'),
    address: z.string(),
    user_agent: z.string(),
    current: z.boolean().describe('The session of this request'),
  }),
)

/**
 * A user's sessions that have not ended, the latest first. `current` is the HMAC of the session from which
 * the request came.
 */
export async function ownSessions(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  { id: userId }: User,
  current: string | undefined,
): Promise<z.output<typeof sessionsSchema>> {
  const nowSeconds = Math.floor(nowMs() / 1000)
  const sessions = await store.read('sessionsOf', { userId, nowSeconds })
  return sessions.map(({ idHash, created_time, lastUsed, address, userAgent }) => ({
    id: idHash,
    created_time,
    last_used: lastUsed,
    address,
    user_agent: userAgent,
    current: idHash === current,
  }))
}

/**
 * Identities at identity providers that are linked to a user, with times in Unix seconds. `docs/api.md:
 * Linked identities`.
 */
export const identitiesSchema = z.array(
  z.object({
    issuer: z.string(),
    subject: z.string(),
    provider: z.string().describe('Name of the provider; empty where it is no longer configured'),
    created_time: z.int(),
  }),
)

/** Query parameters that name a linked identity. */
export const identityQuery = z.object({
  issuer: z.string().describe('As the list names it'),
  subject: z.string().describe('As the list names it'),
})

/** The identities linked to a user, the oldest first. */
export async function ownIdentities(
  { store, settings }: Pick<ManagementServices, 'store' | 'settings'>,
  { id }: Pick<User, 'id'>,
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
 * Links a verified identity to the user from whose session the sign-in was started. Throws 401 if that
 * session has ended, and 403 if the identity belongs to another user.
 */
export async function linkIdentity(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
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
 * Removes a linked identity from a user, and ends all sessions of the user except the one from which the
 * request came. Throws 404 if the user does not have this identity, and 400 if the user could not sign in any
 * more.
 */
export async function unlinkIdentity(
  { store, settings }: Pick<ManagementServices, 'store' | 'settings'>,
  { id: userId }: Pick<User, 'id'>,
  identity: Identity,
  remainingSession: string | undefined,
): Promise<void> {
  const acceptsPasswords = settings().login.password
  const outcome = await store.write('unlinkIdentity', {
    identity,
    userId,
    remainingSession,
    acceptsPasswords,
  })
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
