import { hash } from 'node:crypto'
import { z } from 'zod'
import { refuseCrossSite } from '../accounts/authentication/refuse-cross-site.ts'
import { sessionCookie, sessionFromCookie } from '../accounts/authentication/session-cookie.ts'
import type { OidcProvider, Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../http/request.ts'
import { acceptanceInput, acceptInvitation } from '../management/users/invitations.ts'
import { linkIdentity } from '../management/users/own-account.ts'
import { logIn, loginInput, signInByIdentity } from '../management/users/sign-in.ts'
import { defineUnauthenticatedEndpoint, type JsonEndpoint } from './endpoint.ts'
import { pageLanguage, wantsHtmlPage } from './refusal-page.ts'

/**
 * The limit of sign-in attempts for one name from all addresses, as a multiple of the limit for one address.
 */
const TIMES_BY_NAME = 10

const PAGE_AREAS = { en: 'page', zh: 'page-zh' } as const

const OIDC = {
  hasEffect: true,
  cache: 'never',
  redirects: true,
  // A browser that returns from the identity provider gets errors as a page.
  areaOf: ({ headers }: Request) =>
    wantsHtmlPage(headers.accept) ? PAGE_AREAS[pageLanguage(headers['accept-language'])] : 'management',
  params: z.object({
    name: z.string().regex(/^[a-z0-9-]{1,40}$/, { error: 'expected the name of an identity provider' }),
  }),
} as const

/**
 * Endpoints to sign in and out: `docs/api.md: Sessions`, and `docs/api.md: Sign-in at an identity provider`.
 */
export const SIGN_IN_ENDPOINTS: readonly JsonEndpoint[] = [
  defineUnauthenticatedEndpoint('POST', '/api/user/login', {
    summary: 'Begin a session of the console',
    errorStatuses: [401, 403],
    limit: 'critical',
    limitSubjects({ body, addressBlock, services }) {
      if ('accessToken' in body) return [{ subject: addressBlock, label: 'this address', factor: 1 }]
      const { username } = body
      // Wrong passwords for this name from other addresses, or for other names, must not lock out a user who
      // has signed in from this address before.
      if (services.signIns.knows(username, addressBlock)) {
        return [{ subject: `at ${addressBlock} ${username}`, label: 'this name at this address', factor: 1 }]
      }
      return [
        { subject: addressBlock, label: 'this address', factor: 1 },
        { subject: `named ${username}`, label: 'this name', factor: TIMES_BY_NAME },
      ]
    },
    cache: 'never',
    body: loginInput,
    bodyLimit: 4096,
    responseBody: z.object({
      id: z.int(),
      username: z.string(),
      display_name: z.string(),
      role: z.int(),
      status: z.int(),
      group: z.string(),
    }),
    async handle({ body, address, addressBlock, exchange, services }) {
      const { options } = services.settings()
      refuseCrossSite(exchange.request, options.trusted_proxies)
      const place = { address, userAgent: exchange.request.headers['user-agent'] }
      const { user, session } = await logIn(services, body, addressBlock, place)
      exchange.record.userId = user.id
      exchange.response.setHeader('set-cookie', sessionCookie(exchange.request, session, options))
      const { id, username, display_name, role, status, group } = user
      return { id, username, display_name, role, status, group }
    },
  }),
  defineUnauthenticatedEndpoint('POST', '/api/user/invite/accept', {
    summary: 'Accept an invitation: become a user with a name and a password',
    errorStatuses: [403, 404],
    limit: 'critical',
    // One invitation must not allow many guesses at the names of others, also from different addresses.
    limitSubjects: ({ body, addressBlock }) => [
      { subject: addressBlock, label: 'this address', factor: 1 },
      { subject: `invited ${hash('sha256', body.token)}`, label: 'this invitation', factor: 1 },
    ],
    cache: 'never',
    body: acceptanceInput,
    bodyLimit: 4096,
    responseBody: z.object({ id: z.int(), username: z.string() }),
    async handle({ body, addressBlock, exchange, services }) {
      refuseCrossSite(exchange.request, services.settings().options.trusted_proxies)
      const user = await acceptInvitation(services, body, addressBlock)
      exchange.record.userId = user.id
      return user
    },
  }),
  endsSession('POST'),
  // Clients of older gateways log out with GET.
  endsSession('GET'),
  defineUnauthenticatedEndpoint('GET', '/api/user/oidc/:name', {
    ...OIDC,
    summary: 'Begin a sign-in at an identity provider',
    query: z.object({
      next: z.string().optional().describe('Path to go to afterwards, without the base path'),
    }),
    async handle({ params: { name }, query: { next }, exchange: { request, response }, services }) {
      const provider = findProvider(services.settings(), name)
      const { location, cookie } = await services.oidc.begin(provider, request, next)
      response.setHeader('set-cookie', cookie)
      return location
    },
  }),
  defineUnauthenticatedEndpoint('GET', '/api/user/oidc/:name/callback', {
    ...OIDC,
    summary: 'End a sign-in at an identity provider: begin a session of the console, or link the identity',
    errorStatuses: [401, 403],
    async handle({ params: { name }, address, exchange, services }) {
      const { request, response, record } = exchange
      const provider = findProvider(services.settings(), name)
      const { identity, next, link } = await services.oidc.complete(provider, request, (cookie) =>
        response.addHeader('set-cookie', cookie),
      )
      if (link) {
        record.userId = link.userId
        await linkIdentity(services, identity, link)
        return next
      }
      const place = { address, userAgent: request.headers['user-agent'] }
      const { user, session } = await signInByIdentity(services, provider, identity, place)
      record.userId = user.id
      response.setHeader('set-cookie', sessionCookie(request, session, services.settings().options))
      return next
    },
  }),
]

// Needs no session: logging out without one succeeds.
function endsSession(method: 'GET' | 'POST'): JsonEndpoint {
  return defineUnauthenticatedEndpoint(method, '/api/user/logout', {
    hasEffect: true,
    summary: 'End the session of the console',
    errorStatuses: [403],
    cache: 'never',
    responseBody: z
      .object({ logout_url: z.string().describe("Ends the identity provider's own session") })
      .optional(),
    async handle({ exchange: { request, response }, services }) {
      const { options } = services.settings()
      refuseCrossSite(request, options.trusted_proxies)
      const session = sessionFromCookie(request)
      const ended =
        session === undefined ? null : await services.store.write('endSession', { cookieValue: session })
      response.setHeader('set-cookie', sessionCookie(request, undefined, options))
      return ended?.logoutUrl == null ? undefined : { logout_url: ended.logoutUrl }
    },
  })
}

/** The identity provider of that name; throws 404 if there is none. */
export function findProvider({ login }: Settings, name: string): OidcProvider {
  const provider = login.oidc.find((one) => one.name === name)
  if (!provider) throw new GatewayError('not_found', `there is no identity provider "${name}"`)
  return provider
}
