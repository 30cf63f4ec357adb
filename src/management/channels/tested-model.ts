import type { Channel } from '../../domain/records/channel.ts'
import { type ProtocolName, PROTOCOL_NAMES, PROTOCOLS } from '@sluice/wire/protocols'
import { isForUnsupportedEndpoint } from '../../domain/endpoint-by-name.ts'
import { endpointsFor } from '../../domain/endpoint-types.ts'
import type { ModelCatalogue } from '../../domain/settings.ts'

/** Endpoints that tests call: those of dialects, and others; `models` is the upstream's list of models. */
export const TESTED_ENDPOINTS = [
  ...PROTOCOL_NAMES,
  'embeddings',
  'moderations',
  'images',
  'speech',
  'models',
] as const

/** Endpoint of an upstream that a test calls. */
export type TestedEndpoint = (typeof TESTED_ENDPOINTS)[number]

/** Model of a channel that a test uses, and its endpoint. */
export interface TestedModel {
  readonly model: string
  readonly endpoint: TestedEndpoint
}

/** Endpoints whose smallest request still costs a picture or a word of speech. */
const COSTLY: ReadonlySet<TestedEndpoint> = new Set(['images', 'speech'])

/** Whether a provider charges more than a few tokens for the test of an endpoint. */
export function isCostly(endpoint: TestedEndpoint): boolean {
  return COSTLY.has(endpoint)
}

/**
 * Chooses the model of a test: `wanted`; otherwise the channel's first model whose test costs neither a
 * picture nor speech; otherwise its first.
 */
export function testedModel(channel: Channel, wanted: string, models: ModelCatalogue): TestedModel {
  const names = wanted === '' ? channel.models : [wanted]
  const all = names.map((model) => ({ model, endpoint: testedEndpoint(channel, model, models) }))
  return (
    all.find(({ endpoint }) => !isCostly(endpoint)) ??
    all[0] ?? { model: '', endpoint: dialectOf(channel, '') }
  )
}

/**
 * Like `testedModel`, for automatic tests: if a test would be costly, they read the upstream's list of models
 * instead.
 */
export function cheapTest(channel: Channel, wanted: string, models: ModelCatalogue): TestedModel {
  const { model, endpoint } = testedModel(channel, wanted, models)
  return { model, endpoint: isCostly(endpoint) ? 'models' : endpoint }
}

/** Finds the endpoint of a model by both of its names, its price, and the channel's dialects. */
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
    if (endpoint === 'transcriptions') return 'models'
    if (endpoint === 'embeddings' || endpoint === 'moderations') return endpoint
    if (endpoint === 'images' || endpoint === 'speech') return endpoint
  }
  return dialectOf(channel, upstreamModel)
}

const RERANKS = /rerank/i

/** Dialects of models on Vertex; models of all other vendors use chat. */
const ON_VERTEX: readonly (readonly [RegExp, ProtocolName])[] = [
  [/^claude/i, 'messages'],
  [/^gemini/i, 'gemini'],
]

/** Finds the dialect of a conversation: on Vertex by the model, otherwise the channel's first. */
function dialectOf({ protocol: protocols, provider }: Channel, upstreamModel: string): ProtocolName {
  const first = protocols.find((one) => PROTOCOLS[one].isConversation) ?? 'chat'
  if (provider !== 'vertex') return first
  const named = ON_VERTEX.find(([pattern]) => pattern.test(upstreamModel))?.[1] ?? 'chat'
  return protocols.includes(named) ? named : first
}
