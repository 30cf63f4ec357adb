import { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import { ownSessions, sessionsSchema } from '../../management/users/own-sessions.ts'
import { defineEndpoint } from '../endpoint.ts'

const PATH = '/api/user/self/sessions'

/** `docs/api.md: Sessions`. */
export const listOwnSessions = defineEndpoint({
  method: 'GET',
  path: PATH,
  area: 'management',
  access: 'account',
  summary: "The account's sessions of the console, the latest first",
  responseBody: sessionsSchema,
  handle: ({ user, sessionHash, parts }) => ownSessions(parts, user, sessionHash),
})

/** Ends one session of the account. */
export const endOwnSession = defineEndpoint({
  method: 'DELETE',
  path: `${PATH}/:id`,
  area: 'management',
  access: 'account',
  summary: "End one of the account's sessions",
  params: z.object({ id: z.string().regex(/^[0-9a-f]{64}$/, { error: 'expected the id of a session' }) }),
  async handle({ user, params, parts }) {
    const isEnded = await parts.store.write('endOwnSession', { userId: user.id, idHash: params.id })
    if (!isEnded) throw new GatewayError('not_found', 'there is no such session')
  },
})
