import { z } from 'zod'
import { changeToken as change } from '../../management/tokens/change-token.ts'
import { switchedToken, switchToken } from '../../management/tokens/switch-token.ts'
import { changedTokenFields } from '../../management/tokens/token-fields.ts'
import { tokenSchema } from '../../management/tokens/token-object.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const changeToken = defineEndpoint({
  method: 'PUT',
  path: '/api/token/',
  area: 'management',
  access: 'account',
  summary: "Changes one of the account's tokens; with status_only=1 its status alone",
  errorStatuses: [404, 409],
  query: z.object({ status_only: z.string().optional() }),
  body: z.union([changedTokenFields, switchedToken]),
  bodyIf: { query: 'status_only', is: switchedToken, else: changedTokenFields },
  responseBody: tokenSchema,
  handle: ({ user, body, parts }) =>
    'status' in body
      ? switchToken(parts, { ...body, user: user.id })
      : change(parts, { ...body, user: user.id }, user),
})
