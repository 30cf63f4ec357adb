import { z } from 'zod'
import { deleteTokens as deleteAll } from '../../management/tokens/delete-tokens.ts'
import { TOKEN_ID } from '../../management/tokens/token-id.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const deleteTokens = defineEndpoint({
  method: 'POST',
  path: '/api/token/batch',
  area: 'management',
  access: 'account',
  summary: "Deletes several of the account's tokens, and returns how many there were",
  body: TOKEN_ID.body,
  responseBody: z.int(),
  handle: ({ user, body, parts }) => deleteAll(parts, { user: user.id, ids: body.ids }),
})
