import { pageOf, pageQuery } from '../../management/page.ts'
import { tokenPage, tokenPageSchema } from '../../management/tokens/token-page.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const listTokens = defineEndpoint({
  method: 'GET',
  path: '/api/token/',
  area: 'management',
  access: 'account',
  summary: "A page of the account's tokens, newest first",
  query: pageQuery,
  responseBody: tokenPageSchema,
  handle: ({ user, query, parts }) => tokenPage(parts, { user: user.id, ...pageOf(query) }),
})
