import { z } from 'zod'
import { pageOf, pageQuery } from '../../management/page.ts'
import { searchTokens as search } from '../../management/tokens/search-tokens.ts'
import { tokenPageSchema } from '../../management/tokens/token-page.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const searchTokens = defineEndpoint({
  method: 'GET',
  path: '/api/token/search',
  area: 'management',
  access: 'account',
  limit: 'search',
  summary: "A page of the account's tokens whose name and key match",
  errorStatuses: [400],
  query: pageQuery.extend({ keyword: z.string().optional(), token: z.string().optional() }),
  responseBody: tokenPageSchema,
  handle: ({ user, query: { keyword, token, ...page }, parts }) =>
    search(parts, { user: user.id, keyword, token, ...pageOf(page) }),
})
