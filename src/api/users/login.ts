import { z } from 'zod'
import { refuseOtherSite } from '../../auth/refuse-other-site.ts'
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
  fails: [401, 403],
  limit: 'critical',
  limitsOn({ body: { username }, from, parts }) {
    // Guesses from elsewhere, or of other names, must not keep out who signed in from here before.
    if (parts.signIns.knows(username, from)) {
      return [{ whom: `at ${from} ${username}`, whose: 'this name at this address', times: 1 }]
    }
    return [
      { whom: from, whose: 'this address', times: 1 },
      { whom: `named ${username}`, whose: 'this name', times: TIMES_BY_NAME },
    ]
  },
  cache: 'never',
  body: loginInput,
  bodyLimit: 4096,
  answer: z.object({
    id: z.int(),
    username: z.string(),
    display_name: z.string(),
    role: z.int(),
    status: z.int(),
    group: z.string(),
  }),
  async handle({ body, from, visit, parts }) {
    const { trustedProxies } = parts.settings().options
    refuseOtherSite(visit.request, trustedProxies)
    const { user, session } = await logIn(parts, body, from)
    visit.record.userId = user.id
    visit.response.setHeader('set-cookie', sessionCookie(visit.request, session, trustedProxies))
    const { id, username, displayName, role, status, group } = user
    return { id, username, display_name: displayName, role, status, group }
  },
})
