import { z } from 'zod'
import { makeToken } from '../../management/tokens/create-token.ts'
import { newTokenFields } from '../../management/tokens/token-fields.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const createToken = defineEndpoint({
  method: 'POST',
  path: '/api/token/',
  area: 'management',
  access: 'account',
  limit: 'critical',
  limitIf: 'reveal',
  cache: 'never',
  summary: 'A new token; the response contains its id and its key with reveal=1 alone',
  query: z.object({ reveal: z.string().optional() }),
  body: newTokenFields,
  responseBody: z.object({ id: z.int(), key: z.string() }).optional(),
  async handle({ user, query, body, parts }) {
    const { id, key } = await makeToken(parts, { ...body, user: user.id }, user)
    return query.reveal === '1' ? { id, key } : undefined
  },
})
