import type { Channel } from '../../domain/records/channel.ts'
import { type DialectRequest, type Provider, type ProviderTarget, ProviderRefusal } from '../provider.ts'
import type { UpstreamKey } from '../key-ring.ts'
import { type BedrockKey, BEDROCK_KEY_FORMS, parseBedrockKey } from '../../domain/bedrock-key.ts'
import { BedrockResponses } from './bedrock-responses.ts'
import { BedrockCount, countBody } from './count-tokens.ts'
import { EmbeddingUsage } from './embedding-usage.ts'
import { invokeBody } from './invoke-body.ts'
import { encodeSegment, signatureHeaders } from './signature-v4.ts'

/** Name of the service in signatures: not that of its host. */
const SERVICE = 'bedrock'
const JSON_TYPE = 'application/json'
const EVENT_STREAM = 'application/vnd.amazon.eventstream'

/** Keys, read once each. */
const keys = new WeakMap<UpstreamKey, BedrockKey>()

/** Amazon Bedrock's runtime: Claude by `invoke`, other vendors' models by `converse`. */
export const bedrock: Provider = {
  adapt(request) {
    if (request.protocol === 'converse') return { body: request.body, dropped: [] }
    const adapted = invokeBody(request.body, request.headers, request.upstreamModel ?? '')
    return isCount(request) ? { ...adapted, body: countBody(adapted.body) } : adapted
  },
  request(request, target) {
    const path = `/model/${encodeSegment(request.upstreamModel ?? '')}/${operationOf(request)}`
    const { body } = request
    if (!Buffer.isBuffer(body)) throw new ProviderRefusal(`Bedrock channels do not serve ${request.path}`)
    const headers = ['accept', request.stream === true ? EVENT_STREAM : JSON_TYPE]
    return { path, headers: [...headers, ...credentials(path, body, target)], body }
  },
  responses(request, listener) {
    if (isCount(request)) return new BedrockResponses(new BedrockCount(listener), request.protocol)
    const tells = request.path === '/invoke' ? new EmbeddingUsage(listener) : listener
    return new BedrockResponses(tells, request.protocol)
  },
}

function isCount({ path }: DialectRequest): boolean {
  return path.endsWith('/count_tokens')
}

function operationOf(request: DialectRequest): string {
  const { protocol, path, stream = false } = request
  if (isCount(request)) return 'count-tokens'
  if (protocol === 'converse') return path.slice(1)
  if (protocol === 'messages') return stream ? 'invoke-with-response-stream' : 'invoke'
  throw new ProviderRefusal(`Bedrock channels do not serve ${path}`)
}

function credentials(path: string, body: Buffer, { channel, key, now }: ProviderTarget): readonly string[] {
  const parsed = keyOf(key)
  if ('bearer' in parsed) return ['authorization', `Bearer ${parsed.bearer}`]
  const url = new URL(channel.base_url)
  const basePath = url.pathname === '/' ? '' : url.pathname
  const signable = { method: 'POST', host: url.host, path: basePath + path, contentType: JSON_TYPE, body }
  return signatureHeaders(signable, parsed.aws, { service: SERVICE, region: regionOf(channel) }, now)
}

function keyOf(key: UpstreamKey): BedrockKey {
  let parsed = keys.get(key)
  if (parsed) return parsed
  parsed = parseBedrockKey(key.value)
  if (!parsed) throw new ProviderRefusal(`the key of a Bedrock channel has to be ${BEDROCK_KEY_FORMS}`, true)
  keys.set(key, parsed)
  return parsed
}

function regionOf({ region }: Channel): string {
  if (region === null) throw new Error('only channels of Bedrock have a region')
  return region
}
