import { z } from 'zod'
import { refuseCrossSite } from '../../auth/refuse-cross-site.ts'
import { sessionCookie } from '../../auth/session-cookie.ts'
import { logIn, loginInput } from '../../management/users/log-in.ts'
import { defineEndpoint } from '../endpoint.ts'

/** Attempts allowed for one name from all addresses together, as a multiple of those from one address. */
const TIMES_BY_NAME = 10

/** `docs/api.md: Sessions`. */
export const login = defineEndpoint({
  method: 'POST',
  path: '/api/user/login',
  area: 'management',
  access: 'visitor',
  summary: 'Begin a session of the console',
  errorStatuses: [401, 403],
  limit: 'critical',
  limitSubjects({ body, addressBlock, parts }) {
    if ('accessToken' in body) return [{ subject: addressBlock, label: 'this address', factor: 1 }]
    const { username } = body
    // Guesses from elsewhere, or of other names, must not lock out a user who has signed in from here before.
    if (parts.signIns.knows(username, addressBlock)) {
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
  async handle({ body, address, addressBlock, exchange, parts }) {
    const { options } = parts.settings()
    refuseCrossSite(exchange.request, options.trusted_proxies)
    const place = { address, userAgent: exchange.request.headers['user-agent'] }
    const { user, session } = await logIn(parts, body, addressBlock, place)
    exchange.record.userId = user.id
    exchange.response.setHeader('set-cookie', sessionCookie(exchange.request, session, options))
    const { id, username, display_name, role, status, group } = user
    return { id, username, display_name, role, status, group }
  },
})
