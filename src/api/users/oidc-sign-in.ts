import { z } from 'zod'
import { sessionCookie } from '../../auth/session-cookie.ts'
import type { OidcProvider } from '../../domain/login-settings.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import { linkIdentity } from '../../management/users/link-identity.ts'
import { signInByIdentity } from '../../management/users/sign-in-by-identity.ts'
import type { Request } from '../../http/request.ts'
import { defineEndpoint } from '../endpoint.ts'
import { pageLanguage, wantsPage } from '../refusal-page.ts'

const PAGE_AREAS = { en: 'page', zh: 'page-zh' } as const

const COMMON = {
  method: 'GET',
  hasEffect: true,
  area: 'management',
  access: 'visitor',
  cache: 'never',
  redirects: true,
  // Errors are shown as a page to a person at the end of a sign-in.
  areaOf: ({ headers }: Request) =>
    wantsPage(headers.accept) ? PAGE_AREAS[pageLanguage(headers['accept-language'])] : 'management',
  params: z.object({
    name: z.string().regex(/^[a-z0-9-]{1,40}$/, { error: 'expected the name of an identity provider' }),
  }),
} as const

/** `docs/api.md: Sign-in at an identity provider`. */
export const oidcStart = defineEndpoint({
  ...COMMON,
  path: '/api/user/oidc/:name',
  summary: 'Begin a sign-in at an identity provider',
  query: z.object({ next: z.string().optional().describe('Path to go to afterwards') }),
  async handle({ params: { name }, query: { next }, exchange: { request, response }, parts }) {
    const provider = providerNamed(parts.settings(), name)
    const { location, cookie } = await parts.oidc.begin(provider, request, next)
    response.setHeader('set-cookie', cookie)
    return location
  },
})

/** End of a sign-in, or of linking an identity, to which the provider redirects the browser. */
export const oidcCallback = defineEndpoint({
  ...COMMON,
  path: '/api/user/oidc/:name/callback',
  summary: 'End a sign-in at an identity provider: begin a session of the console, or link the identity',
  errorStatuses: [401, 403],
  async handle({ params: { name }, address, exchange, parts }) {
    const { request, response, record } = exchange
    const provider = providerNamed(parts.settings(), name)
    const { identity, next, link } = await parts.oidc.complete(provider, request)
    if (link) {
      record.userId = link.userId
      await linkIdentity(parts, identity, link)
      return next
    }
    const place = { address, userAgent: request.headers['user-agent'] }
    const { user, session } = await signInByIdentity(parts, provider, identity, place)
    record.userId = user.id
    response.setHeader('set-cookie', sessionCookie(request, session, parts.settings().options))
    return next
  },
})

/** The identity provider of that name; throws 404 if there is none. */
export function providerNamed({ login }: Settings, name: string): OidcProvider {
  const provider = login.oidc.find((one) => one.name === name)
  if (!provider) throw new GatewayError('not_found', `there is no identity provider "${name}"`)
  return provider
}
