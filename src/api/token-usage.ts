import { accountFigures } from '../management/account-figures.ts'
import { tokenUsageObject, tokenUsageSchema } from '../management/token-usage-object.ts'
import { allowedNames } from '../relay/permissions.ts'
import { defineEndpoint, type OpenEndpoint } from './endpoint.ts'

/** `docs/api.md: Self-check and billing`. */
export const tokenUsage = defineEndpoint({
  method: 'GET',
  path: '/api/usage/token/',
  area: 'usage',
  access: 'reading-key',
  summary: 'What the API key has used and has left',
  answer: tokenUsageSchema,
  async handle({ token: { id }, parts }) {
    const { token } = await accountFigures(parts, id)
    return tokenUsageObject(token, allowedNames(token) ?? [])
  },
})

/** The same without the slash at its end leads there. */
export const tokenUsageRedirect: OpenEndpoint = {
  method: 'GET',
  path: '/api/usage/token',
  area: 'usage',
  door: 'raw',
  access: 'anyone',
  summary: 'Leads to the path with a slash at its end',
  handle({ id, request: { url = '' }, response }) {
    const query = url.slice(tokenUsageRedirect.path.length)
    response.writeHead(301, {
      location: `${tokenUsage.path}${query}`,
      'content-length': '0',
      'cache-control': 'no-store',
      'x-request-id': id,
    })
    response.end()
  },
}
