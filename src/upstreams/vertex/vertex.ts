import { VERTEX_TIER_HEADER, VERTEX_TYPE_HEADER, vertexTierHeader } from '../tier-headers.ts'
import { type ProtocolName } from '@sluice/wire/protocols'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { Channel } from '../../domain/records/channel.ts'
import { parseServiceAccount, type ServiceAccount } from '../../domain/provider-keys.ts'
import type { UpstreamKey } from '../key-ring.ts'
import {
  type AdaptedBody,
  type JsonRequest,
  type WireRequest,
  type Provider,
  ProviderRefusal,
} from '../provider.ts'
import { AccessTokens, type PostForm } from './access-tokens.ts'

const BEARER = 'Bearer '

/**
 * Google's Vertex AI: Gemini, Claude through `rawPredict`, and an OpenAI-compatible endpoint for other
 * vendors' models.
 */
export function vertex(post: PostForm): Provider {
  const tokens = new AccessTokens(post)
  const accounts = new WeakMap<UpstreamKey, ServiceAccount>()

  const accountOf = (key: UpstreamKey): ServiceAccount => {
    let account = accounts.get(key)
    if (account) return account
    const parsed = parseServiceAccount(key.value)
    if ('expected' in parsed)
      throw new ProviderRefusal(`the key of a Vertex channel has to be ${parsed.expected}`, true)
    accounts.set(key, (account = parsed))
    return account
  }

  return {
    readHeaders: [VERTEX_TIER_HEADER],
    adapt(request) {
      const { protocol, body } = request
      const api = APIS[protocol]
      const adapted = api?.body?.(body, isCount(request)) ?? body
      return withTierHeader({ ...request, body: adapted }, api?.tiers ?? [])
    },
    async request(request, target) {
      const { channel, key } = target
      const account = accountOf(key)
      const path = `${projectPath(channel, account)}${pathOf(request)}`
      const token = await tokens.of(target, account)
      return { ...request, path, headers: [...passedHeaders(request), 'authorization', BEARER + token] }
    },
    renew({ key }, { headers }) {
      tokens.discard(key, headers.at(-1)?.slice(BEARER.length) ?? '')
      return true
    },
  }
}

function projectPath({ provider, project: own, location }: Channel, account: ServiceAccount): string {
  if (provider !== 'vertex') throw new Error('only channels of Vertex have a location')
  const project = own ?? account.project
  if (project === undefined)
    throw new ProviderRefusal('a Vertex channel needs `project`: the key of its service account names none')
  return `/v1/projects/${encodeURIComponent(project)}/locations/${encodeURIComponent(location ?? 'global')}`
}

interface VertexApi {
  /** The path, relative to the project's location. */
  readonly path: (request: WireRequest) => string
  /**
   * JSON members of a request that name a service tier. They are moved to a header, which Vertex AI reads
   * instead.
   */
  readonly tiers?: readonly string[]
  /** Converts the request body; absent if the body stays unchanged. */
  readonly body?: (body: Buffer, isCount: boolean) => Buffer
}

/** Vertex AI's API for each protocol; undefined if Vertex AI has none. */
const APIS: Readonly<Record<ProtocolName, VertexApi | undefined>> = {
  chat: { path: ({ path }) => `/endpoints/openapi${path}`, tiers: ['service_tier'] },
  messages: { path: rawPredictPath, body: rawPredictBody },
  gemini: {
    path: ({ path }) => `/publishers/google${path}`,
    tiers: ['serviceTier', 'service_tier'],
  },
  responses: undefined,
  converse: undefined,
  rerank: undefined,
}

/** Moves the service tier from JSON members of a request to a header. */
function withTierHeader(
  { body, headers: given }: Pick<JsonRequest, 'body' | 'headers'>,
  members: readonly string[],
): AdaptedBody {
  if (!members.some((name) => body.includes(`"${name}"`))) return { body, dropped: [] }
  const scan = scanObject(body, RESPONSE_LIMITS)
  const named = members.filter((name) => scan.has(name))
  const tiers = named.map((name) => ({ name, ...vertexTierHeader(scan.value(name)) }))
  const headers = tiers.flatMap(({ header }) => header).slice(0, 2)
  return {
    body: applyEdits(body, scan, { remove: named, replace: new Map() }),
    dropped: tiers.flatMap(({ name, isLacking }) => (isLacking ? [name] : [])),
    ...(headers.length > 0 && { headers: [...given, ...headers] }),
  }
}

function pathOf(request: WireRequest): string {
  const api = APIS[request.protocol]
  if (!api) throw new ProviderRefusal(`Vertex channels do not serve ${request.path}`)
  return api.path(request)
}

function rawPredictPath(request: WireRequest): string {
  const { stream = false, upstreamModel = '' } = request
  const model = isCount(request) ? 'count-tokens' : encodeURIComponent(upstreamModel).replace('%40', '@')
  return `/publishers/anthropic/models/${model}:${stream ? 'streamRawPredict' : 'rawPredict'}`
}

function isCount({ path }: WireRequest): boolean {
  return path.endsWith('/count_tokens')
}

// Only some headers are passed on, because Vertex AI refuses or ignores others. When tokens are counted, it
// refuses even beta features that the model accepts.
function passedHeaders(request: WireRequest): string[] {
  const passed = isCount(request) ? COUNT_HEADERS : HEADERS
  return request.headers.filter((_, index, all) => passed.has(all[index - (index % 2)] as string))
}

const COUNT_HEADERS: ReadonlySet<string> = new Set(['accept'])
const HEADERS: ReadonlySet<string> = new Set([
  ...COUNT_HEADERS,
  'anthropic-beta',
  VERTEX_TIER_HEADER,
  VERTEX_TYPE_HEADER,
])

/** Version of the messages protocol that Vertex AI requires in the body. */
const VERSION = 'vertex-2023-10-16'

/**
 * Converts a messages request for `rawPredict`: the version is added to the body, and the model is removed
 * from it, because the URL contains it (unless `keepsModel`). All other bytes stay.
 */
function rawPredictBody(body: Buffer, keepsModel: boolean): Buffer {
  const scan = scanObject(body, RESPONSE_LIMITS)
  const replace = new Map<string, string>()
  if (!scan.has('anthropic_version')) replace.set('anthropic_version', JSON.stringify(VERSION))
  return applyEdits(body, scan, { remove: keepsModel ? [] : ['model'], replace })
}
