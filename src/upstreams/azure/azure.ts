import type { DialectRequest, Provider } from '../provider.ts'
import { ProviderRefusal } from '../provider.ts'

/**
 * Azure: models by deployment below a dated `api_version`, or by the v1 API without one; Claude in Foundry.
 * The upstream's name of a model is that of its deployment.
 */
export const azure: Provider = {
  request(request, { channel: { provider }, key }) {
    if (provider?.name !== 'azure') throw new Error('only channels of Azure have an API version')
    const isMessages = request.protocol === 'messages'
    const path = isMessages ? `/anthropic/v1${request.path}` : pathOf(request, provider.apiVersion)
    const headers = [...request.headers, isMessages ? 'x-api-key' : 'api-key', key.value]
    return { path, headers, body: request.body }
  },
}

function pathOf({ path, upstreamModel }: DialectRequest, apiVersion: string | undefined): string {
  if (apiVersion === undefined) return `/openai/v1${path}`
  const dated = `${path}${path.includes('?') ? '&' : '?'}api-version=${encodeURIComponent(apiVersion)}`
  // Below no deployment: responses, whose model is in their body, and the list of models.
  if (path.startsWith('/responses') || path === '/models') return `/openai${dated}`
  if (upstreamModel === undefined) throw new ProviderRefusal(`a deployment is needed for ${path}`)
  return `/openai/deployments/${encodeURIComponent(upstreamModel)}${dated}`
}
