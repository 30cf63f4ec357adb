import { z } from 'zod'
import { refuseOtherSite } from '../access/refuse-other-site.ts'
import { sessionCookie } from '../access/session-cookie.ts'
import { logIn, loginInput } from '../management/log-in.ts'
import { defineEndpoint } from './endpoint.ts'

/** `docs/api.md: Sessions`. */
export const login = defineEndpoint({
  method: 'POST',
  path: '/api/user/login',
  area: 'management',
  access: 'visitor',
  summary: 'Begin a session of the console',
  fails: [401, 403],
  limit: 'critical',
  limitOn: ({ username }) => username,
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
  async handle({ body, visit, parts }) {
    const { trustedProxies } = parts.settings().options
    refuseOtherSite(visit.request, trustedProxies)
    const { user, session } = await logIn(parts, body)
    visit.record.userId = user.id
    visit.response.setHeader('set-cookie', sessionCookie(visit.request, session, trustedProxies))
    const { id, username, displayName, role, status, group } = user
    return { id, username, display_name: displayName, role, status, group }
  },
})
