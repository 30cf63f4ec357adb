import { accountFigures } from '../../management/users/account-figures.ts'
import { tokenUsageObject, tokenUsageSchema } from '../../management/tokens/token-usage-object.ts'
import { allowedNames } from '../../relay/key-permissions.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Self-check and billing`. */
export const tokenUsage = defineEndpoint({
  method: 'GET',
  path: '/api/usage/token/',
  area: 'usage',
  access: 'reading-key',
  summary: 'Used and remaining quota of the API key',
  responseBody: tokenUsageSchema,
  async handle({ token: { id }, parts }) {
    const { token } = await accountFigures(parts, id)
    return tokenUsageObject(token, allowedNames(token) ?? [])
  },
})
