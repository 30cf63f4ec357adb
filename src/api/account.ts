import { z } from 'zod'
import { GatewayError } from '../errors.ts'
import { textField } from '../management/input-fields.ts'
import {
  changeOwnProfile,
  identitiesSchema,
  identityQuery,
  ownIdentities,
  ownProfileInput,
  ownSessions,
  sessionsSchema,
  unlinkIdentity,
} from '../management/users/own-account.ts'
import { userNotFound } from '../management/users/list-users.ts'
import { issueAccessToken } from '../management/users/change-user.ts'
import {
  groupsSchema,
  profileObject,
  profileSchema,
  usableGroupsObject,
} from '../management/users/user-object.ts'
import { defineAccountEndpoint, type JsonEndpoint } from './endpoint.ts'
import { findProvider } from './sign-in.ts'

const SESSIONS = '/api/user/self/sessions'
const IDENTITIES = '/api/user/self/identities'

/** `docs/api.md: Own account`: profile, access token, sessions and linked identities of the caller. */
export const ACCOUNT_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAccountEndpoint('GET', '/api/user/self', {
    summary: "The account's own profile",
    responseBody: profileSchema,
    async handle({ user, services }) {
      return profileObject(
        services,
        (await services.store.read('managedUser', { userId: user.id })) ?? userNotFound(user.id),
      )
    },
  }),
  defineAccountEndpoint('PUT', '/api/user/self', {
    summary: "Change the account's own display name or password",
    // Rate-limited, because the endpoint checks a password, which could be guessed.
    limit: 'critical',
    body: ownProfileInput,
    responseBody: profileSchema,
    async handle({ user, sessionHash, body, services }) {
      return profileObject(services, await changeOwnProfile(services, user, body, sessionHash))
    },
  }),
  defineAccountEndpoint('GET', '/api/user/token', {
    hasEffect: true,
    summary: "A new access token, which replaces the account's old one",
    limit: 'critical',
    cache: 'never',
    responseBody: z.string(),
    async handle({ user, services }) {
      return (await issueAccessToken(services, { user: user.id })).access_token
    },
  }),
  defineAccountEndpoint('GET', '/api/user/self/groups', {
    summary: "The groups that the account's tokens may name",
    responseBody: groupsSchema,
    handle: ({ user, services }) => Promise.resolve(usableGroupsObject(services.settings(), user)),
  }),
  defineAccountEndpoint('GET', SESSIONS, {
    summary: "The account's sessions of the console, the latest first",
    responseBody: sessionsSchema,
    handle: ({ user, sessionHash, services }) => ownSessions(services, user, sessionHash),
  }),
  defineAccountEndpoint('DELETE', `${SESSIONS}/:id`, {
    summary: "End one of the account's sessions",
    params: z.object({ id: z.string().regex(/^[0-9a-f]{64}$/, { error: 'expected the id of a session' }) }),
    async handle({ user, params, services }) {
      const isEnded = await services.store.write('endOwnSession', { userId: user.id, idHash: params.id })
      if (!isEnded) throw new GatewayError('not_found', 'there is no such session')
    },
  }),
  defineAccountEndpoint('GET', IDENTITIES, {
    summary: "The account's identities at identity providers, the oldest first",
    responseBody: identitiesSchema,
    handle: ({ user, services }) => ownIdentities(services, user),
  }),
  defineAccountEndpoint('POST', IDENTITIES, {
    summary: 'Begin a sign-in at an identity provider, which links the identity to the account',
    limit: 'critical',
    cache: 'never',
    body: z.object({
      provider: textField('expected the name of an identity provider').describe(
        'Name of the identity provider',
      ),
      next: textField('expected a path').optional().describe('Path to go to afterwards'),
    }),
    responseBody: z.object({ url: z.string().describe('Where the browser goes') }),
    async handle({ user, sessionHash, body, services, exchange: { request, response } }) {
      // Linking needs a session: with an access token, it could be started in a browser in which nobody has
      // signed in.
      if (sessionHash === undefined)
        throw new GatewayError('unauthorized', 'an identity is linked by a session: log in first')
      const provider = findProvider(services.settings(), body.provider)
      const link = { userId: user.id, sessionHash }
      const { location, cookie } = await services.oidc.begin(provider, request, body.next, link)
      response.setHeader('set-cookie', cookie)
      return { url: location }
    },
  }),
  defineAccountEndpoint('DELETE', IDENTITIES, {
    summary: "Take an identity from the account, and end the account's other sessions",
    errorStatuses: [400, 404],
    query: identityQuery,
    handle: ({ user, sessionHash, query, services }) => unlinkIdentity(services, user, query, sessionHash),
  }),
]
