import { z } from 'zod'
import { refuseCrossSite } from '../../auth/refuse-cross-site.ts'
import { sessionCookie } from '../../auth/session-cookie.ts'
import { logIn, loginInput } from '../../management/users/log-in.ts'
import { defineEndpoint } from '../endpoint.ts'

/** How many times as often as from one address a name may be tried from all of them. */
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
  limitsOn({ body: { username }, addressBlock: from, parts }) {
    // Guesses from elsewhere, or of other names, must not keep out who signed in from here before.
    if (parts.signIns.knows(username, from)) {
      return [{ subject: `at ${from} ${username}`, label: 'this name at this address', factor: 1 }]
    }
    return [
      { subject: from, label: 'this address', factor: 1 },
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
  async handle({ body, addressBlock: from, exchange: visit, parts }) {
    const { trustedProxies } = parts.settings().options
    refuseCrossSite(visit.request, trustedProxies)
    const { user, session } = await logIn(parts, body, from)
    visit.record.userId = user.id
    visit.response.setHeader('set-cookie', sessionCookie(visit.request, session, trustedProxies))
    const { id, username, displayName, role, status, group } = user
    return { id, username, display_name: displayName, role, status, group }
  },
})
