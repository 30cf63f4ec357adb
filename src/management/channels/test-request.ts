import { PROTOCOL_NAMES, type ProtocolName, PROTOCOLS } from '@sluice/wire/protocols'
import { generateContentPath } from '@sluice/wire/gemini'
import { capabilitiesOf } from '@sluice/wire/model-capabilities'
import { type Endpoint, endpointsFor, isForUnsupportedEndpoint } from '../../domain/endpoints.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { ModelCatalogue } from '../../domain/settings.ts'
import { embedUpstream } from '../../upstreams/embed-upstream.ts'
import type { WireRequest } from '../../upstreams/provider.ts'

/** A test request; its protocol is `chat` unless it states another. */
type Written = Pick<WireRequest, 'path'> &
  Partial<Pick<WireRequest, 'protocol' | 'headers'>> & { readonly body: object | Buffer }

const MESSAGES = [{ role: 'user', content: 'hi' }]

/** Parameters that make a model generate its cheapest image. */
const CHEAPEST: readonly (readonly [RegExp, object])[] = [
  [/gpt-image/i, { quality: 'low' }],
  [/dall-e-2/i, { size: '256x256' }],
]

const REQUESTS: Record<
  Exclude<TestedEndpoint, 'models'>,
  (upstreamModel: string, requested: string, channel: Channel) => Written
> = {
  chat: (model, requested) => ({
    path: '/chat/completions',
    body: { model, messages: MESSAGES, [capabilitiesOf(model, requested).maximumField]: 1 },
  }),
  messages: (model) => ({
    protocol: 'messages',
    path: '/messages',
    headers: ['anthropic-version', MESSAGES_VERSION],
    body: { model, messages: MESSAGES, max_tokens: 1 },
  }),
  responses: (model) => ({
    protocol: 'responses',
    path: '/responses',
    // Upstreams refuse a smaller maximum of output tokens.
    body: { model, input: 'hi', max_output_tokens: 16, store: false },
  }),
  gemini: (model) => ({
    protocol: 'gemini',
    path: generateContentPath(model, false),
    body: {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      generationConfig: { maxOutputTokens: 1 },
    },
  }),
  converse: () => ({
    protocol: 'converse',
    path: '/converse',
    body: { messages: [{ role: 'user', content: [{ text: 'hi' }] }], inferenceConfig: { maxTokens: 1 } },
  }),
  rerank: (model) => ({
    protocol: 'rerank',
    path: '/rerank',
    body: { model, query: 'hi', documents: ['hi'], top_n: 1 },
  }),
  embeddings(model, requested, channel) {
    const upstream = embedUpstream(channel, requested)
    if (!upstream) return { path: '/embeddings', body: { model, input: 'hi' } }
    const { form, protocol, path } = upstream
    const texts = { texts: ['hi'], dimensions: undefined, task: undefined }
    return { protocol, path, body: form.requests(texts, model, new Set())[0].body }
  },
  images: (model) => ({
    path: '/images/generations',
    body: { model, prompt: 'a dot', n: 1, ...CHEAPEST.find(([pattern]) => pattern.test(model))?.[1] },
  }),
  speech: (model) => ({ path: '/audio/speech', body: { model, input: 'hi', voice: 'alloy' } }),
  moderations: (model) => ({ path: '/moderations', body: { model, input: 'hi' } }),
}

/** Builds the smallest request for the endpoint of a model: one token, one document or one image. */
export function testRequest(channel: Channel, { model, endpoint }: TestedModel): WireRequest {
  if (endpoint === 'models') return modelsRequest(channel)
  const upstreamModel = channel.model_mapping.get(model) ?? model
  const { protocol = 'chat', path, headers = [], body } = REQUESTS[endpoint](upstreamModel, model, channel)
  return {
    protocol,
    path,
    headers: [...headers, 'accept', endpoint === 'speech' ? '*/*' : 'application/json'],
    body: Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)),
    upstreamModel,
  }
}

/**
 * Endpoints of upstreams that tests call: one for each protocol, and some others. `models` is the upstream's
 * model list.
 */
export const TESTED_ENDPOINTS = [
  ...PROTOCOL_NAMES,
  'embeddings',
  'moderations',
  'images',
  'speech',
  'models',
] as const

/** Name of an upstream's endpoint that a test calls. */
export type TestedEndpoint = (typeof TESTED_ENDPOINTS)[number]

/** The model that a test of a channel uses, and the endpoint that is called for it. */
interface TestedModel {
  readonly model: string
  readonly endpoint: TestedEndpoint
}

/** Endpoints for which even the smallest request generates an image or speech. */
const COSTLY: ReadonlySet<TestedEndpoint> = new Set(['images', 'speech'])

/** Whether the provider charges more than a few tokens for a test of this endpoint. */
export function isCostlyEndpoint(endpoint: TestedEndpoint): boolean {
  return COSTLY.has(endpoint)
}

/**
 * Chooses the model of a test: `wanted` if it is not empty; otherwise the channel's first model whose test
 * generates neither an image nor speech; otherwise its first model.
 */
export function testedModel(channel: Channel, wanted: string, models: ModelCatalogue): TestedModel {
  const names = wanted === '' ? channel.models : [wanted]
  const all = names.map((model) => ({ model, endpoint: testedEndpoint(channel, model, models) }))
  return (
    all.find(({ endpoint }) => !isCostlyEndpoint(endpoint)) ??
    all[0] ?? { model: '', endpoint: dialectOf(channel, '') }
  )
}

/**
 * Chooses the model and the endpoint of a test that nobody asked for explicitly: if the test would generate
 * an image or speech, the upstream's model list is read instead.
 */
export function chooseCheapTest(channel: Channel, wanted: string, models: ModelCatalogue): TestedModel {
  const { model, endpoint } = testedModel(channel, wanted, models)
  return { model, endpoint: isCostlyEndpoint(endpoint) ? 'models' : endpoint }
}

/**
 * Chooses the endpoint for testing a model by its name in this gateway, its name at the upstream, its price,
 * and the channel's protocols.
 */
function testedEndpoint(channel: Channel, model: string, models: ModelCatalogue): TestedEndpoint {
  const upstreamModel = channel.model_mapping.get(model) ?? model
  const names = [upstreamModel, model]
  const { price } = models.get(model)
  const protocols = new Set(channel.protocol)
  if (protocols.has('rerank') && (protocols.size === 1 || names.some((name) => RERANKS.test(name))))
    return 'rerank'
  if (names.some(isForUnsupportedEndpoint) && protocols.has('chat')) return 'models'
  for (const name of names) {
    const [endpoint] = endpointsFor(protocols, name, price)
    const tested = endpoint && TESTED_FOR[endpoint]
    if (tested) return tested
  }
  return dialectOf(channel, upstreamModel)
}

/** What is tested for models of an endpoint; undefined where it depends on the channel. */
const TESTED_FOR: Readonly<Record<Endpoint, TestedEndpoint | undefined>> = {
  chat: undefined,
  messages: undefined,
  responses: undefined,
  gemini: undefined,
  completions: undefined,
  rerank: undefined,
  tool: undefined,
  embeddings: 'embeddings',
  images: 'images',
  moderations: 'moderations',
  speech: 'speech',
  transcriptions: 'models',
}

const RERANKS = /rerank/i

/** Protocols of models on Vertex AI, by name; models of all other vendors use `chat`. */
const ON_VERTEX: readonly (readonly [RegExp, ProtocolName])[] = [
  [/^claude/i, 'messages'],
  [/^gemini/i, 'gemini'],
]

/** Chooses the protocol for a conversation: on Vertex AI by the model, otherwise the channel's first one. */
function dialectOf({ protocol: protocols, provider }: Channel, upstreamModel: string): ProtocolName {
  const first = protocols.find((one) => PROTOCOLS[one].isConversation) ?? 'chat'
  if (provider !== 'vertex') return first
  const named = ON_VERTEX.find(([pattern]) => pattern.test(upstreamModel))?.[1] ?? 'chat'
  return protocols.includes(named) ? named : first
}

/** The version of the messages protocol that tests state; `docs/api.md: Versioning`. */
const MESSAGES_VERSION = '2023-06-01'

/**
 * Path and headers for reading an upstream's model list, by protocol. One page is large enough for all models
 * of any vendor.
 */
const MODEL_LISTS: Record<ProtocolName, { readonly path: string; readonly headers?: readonly string[] }> = {
  chat: { path: '/models' },
  messages: { path: '/models?limit=1000', headers: ['anthropic-version', MESSAGES_VERSION] },
  responses: { path: '/models' },
  gemini: { path: '/models?pageSize=1000' },
  converse: { path: '/models' },
  rerank: { path: '/models' },
}

/** Builds the request for an upstream's model list, in the channel's first protocol. */
export function modelsRequest({ protocol: [protocol = 'chat'] }: Channel): WireRequest {
  const { path, headers = [] } = MODEL_LISTS[protocol]
  return {
    method: 'GET',
    protocol,
    path,
    headers: [...headers, 'accept', 'application/json'],
    body: Buffer.alloc(0),
  }
}
