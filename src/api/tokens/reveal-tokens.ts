import { z } from 'zod'
import { revealKeys } from '../../management/tokens/reveal-keys.ts'
import { TOKEN_ID } from '../../management/tokens/token-id.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Token management`. */
export const revealTokens = defineEndpoint({
  method: 'POST',
  path: '/api/token/batch/keys',
  area: 'management',
  access: 'account',
  limit: 'critical',
  cache: 'never',
  summary: "The whole keys of several of the account's tokens",
  body: TOKEN_ID.body,
  responseBody: z.object({ keys: z.record(z.string(), z.string()) }),
  async handle({ user, body, parts }) {
    return { keys: await revealKeys(parts, { user: user.id, ids: body.ids }) }
  },
})
