import { z } from 'zod'
import { changeToken as change } from '../../management/tokens/change-token.ts'
import { switchToken } from '../../management/tokens/switch-token.ts'
import { tokenIdField } from '../../management/tokens/token-id.ts'
import { tokenSchema } from '../../management/tokens/token-object.ts'
import { TEXT_BYTES } from '../../domain/records/field-types.ts'
import { anyField } from '../../management/text-fields.ts'
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
  // The query decides which other fields are read, so they are checked by the operation.
  body: z
    .object({ id: tokenIdField }, { error: 'expected an object with the id of a token' })
    .catchall(anyField(TEXT_BYTES.list)),
  responseBody: tokenSchema,
  handle: ({ user, query, body, parts }) =>
    query.status_only === '1'
      ? switchToken(parts, { ...body, user: user.id })
      : change(parts, { ...body, user: user.id }, user),
})
