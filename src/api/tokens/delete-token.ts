import { deleteTokens } from '../../management/tokens/delete-tokens.ts'
import { noOwnToken, TOKEN_ID } from '../../management/tokens/token-id.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const deleteToken = defineEndpoint({
  method: 'DELETE',
  path: '/api/token/:id',
  area: 'management',
  access: 'account',
  summary: "Deletes one of the account's tokens",
  params: TOKEN_ID.path,
  async handle({ user, params, parts }) {
    if ((await deleteTokens(parts, { user: user.id, ids: [params.id] })) === 0) noOwnToken()
  },
})
