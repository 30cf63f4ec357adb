import { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import { unlinkIdentity } from '../../management/users/unlink-identity.ts'
import { identitiesSchema, ownIdentities } from '../../management/users/own-identities.ts'
import { textField } from '../../management/text-fields.ts'
import { defineEndpoint } from '../endpoint.ts'
import { providerNamed } from './oidc-sign-in.ts'

const COMMON = { path: '/api/user/self/identities', area: 'management', access: 'account' } as const

/** `docs/api.md: Linked identities`. */
export const listOwnIdentities = defineEndpoint({
  ...COMMON,
  method: 'GET',
  summary: "The account's identities at identity providers, the oldest first",
  responseBody: identitiesSchema,
  handle: ({ user, parts }) => ownIdentities(parts, user),
})

/** Begins a sign-in after which the identity is linked to the account of this session. */
export const linkOwnIdentity = defineEndpoint({
  ...COMMON,
  method: 'POST',
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
  async handle({ user, sessionHash, body, parts, exchange: { request, response } }) {
    // With an access token, the link could be started from a browser in which nobody has signed in.
    if (sessionHash === undefined)
      throw new GatewayError('unauthorized', 'an identity is linked by a session: log in first')
    const provider = providerNamed(parts.settings(), body.provider)
    const link = { userId: user.id, sessionHash }
    const { location, cookie } = await parts.oidc.begin(provider, request, body.next, link)
    response.setHeader('set-cookie', cookie)
    return { url: location }
  },
})

/** Removes an identity from the account. */
export const unlinkOwnIdentity = defineEndpoint({
  ...COMMON,
  method: 'DELETE',
  summary: "Take an identity from the account, and end the account's other sessions",
  errorStatuses: [400, 404],
  query: z.object({
    issuer: z.string().describe('As the list names it'),
    subject: z.string().describe('As the list names it'),
  }),
  handle: ({ user, sessionHash, query, parts }) => unlinkIdentity(parts, user, query, sessionHash),
})
