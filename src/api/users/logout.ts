import { z } from 'zod'
import { refuseCrossSite } from '../../auth/refuse-cross-site.ts'
import { sessionCookie, sessionOf } from '../../auth/session-cookie.ts'
import { defineEndpoint, type JsonEndpoint } from '../endpoint.ts'

function endsSession(method: 'GET' | 'POST'): JsonEndpoint {
  return defineEndpoint({
    method,
    hasEffect: true,
    path: '/api/user/logout',
    area: 'management',
    // Clients without a session are already logged out.
    access: 'visitor',
    summary: 'End the session of the console',
    errorStatuses: [403],
    cache: 'never',
    responseBody: z
      .object({ logout_url: z.string().describe("Ends the identity provider's own session") })
      .optional(),
    async handle({ exchange: { request, response }, parts }) {
      const { options } = parts.settings()
      refuseCrossSite(request, options.trusted_proxies)
      const session = sessionOf(request)
      const ended =
        session === undefined ? null : await parts.store.write('endSession', { cookieValue: session })
      response.setHeader('set-cookie', sessionCookie(request, undefined, options))
      return ended?.logoutUrl == null ? undefined : { logout_url: ended.logoutUrl }
    },
  })
}

/** `docs/api.md: Sessions`. */
export const logout = endsSession('POST')

/** `logout` by GET, for clients of older gateways. */
export const logoutByGet = endsSession('GET')
