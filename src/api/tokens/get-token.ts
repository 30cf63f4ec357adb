import { noOwnToken, TOKEN_ID } from '../../management/tokens/token-id.ts'
import { maskedToken, tokenSchema } from '../../management/tokens/token-object.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const getToken = defineEndpoint({
  method: 'GET',
  path: '/api/token/:id',
  area: 'management',
  access: 'account',
  summary: "One of the account's tokens, its key masked",
  params: TOKEN_ID.path,
  responseBody: tokenSchema,
  async handle({ user, params, parts }) {
    const token = await parts.store.read('keyedToken', { tokenId: params.id, userId: user.id })
    return maskedToken(parts, token ?? noOwnToken())
  },
})
