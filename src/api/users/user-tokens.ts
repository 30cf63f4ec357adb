import { z } from 'zod'
import { pageOf, pageQuery } from '../../management/page.ts'
import { makeToken } from '../../management/tokens/create-token.ts'
import { switchedToken, switchToken } from '../../management/tokens/switch-token.ts'
import { newTokenFields } from '../../management/tokens/token-fields.ts'
import { tokenSchema } from '../../management/tokens/token-object.ts'
import { tokenPage, tokenPageSchema } from '../../management/tokens/token-page.ts'
import { manageableUser } from '../../management/users/manageable-user.ts'
import { userIdText } from '../../management/users/user-fields.ts'
import { defineEndpoint, type JsonEndpoint } from '../endpoint.ts'

const COMMON = {
  path: '/api/user/:id/tokens',
  area: 'management',
  access: 'admin',
  errorStatuses: [404],
  params: z.object({ id: userIdText }),
} as const

/** `docs/api.md: Keys of other users`. */
export const userTokens: readonly JsonEndpoint[] = [
  defineEndpoint({
    ...COMMON,
    method: 'GET',
    summary: "A page of a user's tokens, newest first, with masked keys",
    query: pageQuery,
    responseBody: tokenPageSchema,
    async handle({ user: by, params, query, parts }) {
      const { id } = await manageableUser(parts, params.id, by)
      return tokenPage(parts, { user: id, ...pageOf(query) })
    },
  }),
  defineEndpoint({
    ...COMMON,
    method: 'POST',
    summary: 'A new token of a user; its key is in this response alone',
    cache: 'never',
    body: newTokenFields,
    responseBody: tokenSchema,
    async handle({ user: by, params, body, parts }) {
      const { id } = await manageableUser(parts, params.id, by)
      return makeToken(parts, { ...body, user: id }, by)
    },
  }),
  defineEndpoint({
    ...COMMON,
    method: 'PUT',
    summary: "Enables or disables one of a user's tokens",
    body: switchedToken,
    responseBody: tokenSchema,
    async handle({ user: by, params, body, parts }) {
      const { id } = await manageableUser(parts, params.id, by)
      return switchToken(parts, { ...body, user: id })
    },
  }),
]
