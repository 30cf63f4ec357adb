import { type ProtocolName } from '@sluice/wire/protocols'
import { type WireRequest, type Provider, ProviderRefusal } from '../provider.ts'

/**
 * Azure OpenAI, either by deployment with a dated `api_version` or by the v1 API without one, and Claude in
 * Azure's Foundry. The upstream's name for a model is the name of its deployment.
 */
export const azure: Provider = {
  request(request, { channel: { provider, api_version }, key }) {
    if (provider !== 'azure') throw new Error('only channels of Azure have an API version')
    const api = APIS[request.protocol]
    if (!api) throw new ProviderRefusal(`Azure channels do not serve ${request.path}`)
    const headers = [...request.headers, api.keyHeader, key.value]
    return { ...request, path: api.path(request, api_version), headers }
  },
}

interface AzureApi {
  readonly path: (request: WireRequest, api_version: string | null) => string
  readonly keyHeader: string
}

const OPENAI: AzureApi = { path: pathOf, keyHeader: 'api-key' }

/** Azure's API for each protocol; undefined if Azure has none. */
const APIS: Readonly<Record<ProtocolName, AzureApi | undefined>> = {
  chat: OPENAI,
  messages: { path: ({ path }) => `/anthropic/v1${path}`, keyHeader: 'x-api-key' },
  responses: OPENAI,
  gemini: undefined,
  converse: undefined,
  rerank: undefined,
}

function pathOf({ path, upstreamModel }: WireRequest, api_version: string | null): string {
  if (api_version === null) return `/openai/v1${path}`
  const dated = `${path}${path.includes('?') ? '&' : '?'}api-version=${encodeURIComponent(api_version)}`
  // URLs of the Responses API, whose body names the model, of the model list, of files and of batches contain no deployment.
  if (/^\/(?:responses|files|batches|models)\b/.test(path)) return `/openai${dated}`
  if (upstreamModel === undefined) throw new ProviderRefusal(`a deployment is needed for ${path}`)
  return `/openai/deployments/${encodeURIComponent(upstreamModel)}${dated}`
}
