import { z } from 'zod'
import { revealKey } from '../../management/tokens/reveal-keys.ts'
import { TOKEN_ID } from '../../management/tokens/token-id.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const revealToken = defineEndpoint({
  method: 'POST',
  path: '/api/token/:id/key',
  area: 'management',
  access: 'account',
  limit: 'critical',
  cache: 'never',
  summary: "The whole key of one of the account's tokens",
  params: TOKEN_ID.path,
  responseBody: z.object({ key: z.string() }),
  async handle({ user, params, parts }) {
    return { key: await revealKey(parts, { user: user.id, id: params.id }) }
  },
})
