import { createToken as create } from '../../management/tokens/create-token.ts'
import { newTokenFields } from '../../management/tokens/token-fields.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const createToken = defineEndpoint({
  method: 'POST',
  path: '/api/token/',
  area: 'management',
  access: 'account',
  summary: 'A new token; the response contains neither its id nor its key',
  body: newTokenFields,
  async handle({ user, body, parts }) {
    await create(parts, { ...body, user: user.id })
  },
})
