import { withoutThinkingSuffix } from '@sluice/wire/messages'
import type { ClientProtocol, ConversionProtocol, ProtocolName, ServedProtocol } from '@sluice/wire/protocols'
import { ENDPOINTS } from '../../domain/endpoints.ts'
import type { Channel } from '../../domain/records/channel.ts'

/**
 * Dialects of models on Vertex AI, by the upstream's name of the model; the first pattern that matches
 * decides.
 */
const ON_VERTEX: readonly (readonly [pattern: RegExp, dialect: ProtocolName])[] = [
  [/^claude/i, 'messages'],
  [/^gemini|embedding/i, 'gemini'],
  [/^/, 'chat'],
]

/**
 * Dialects in which a channel can serve the model `name`, as a client names it. A Vertex channel serves each
 * model in only one dialect.
 */
export function channelProtocols(
  { protocol: protocols, provider, model_mapping }: Pick<Channel, 'protocol' | 'provider' | 'model_mapping'>,
  name: string,
): readonly ProtocolName[] {
  if (protocols.length === 1 || provider !== 'vertex') return protocols
  const plain = withoutThinkingSuffix(name) ?? name
  const model = model_mapping.get(name) ?? model_mapping.get(plain) ?? name
  const own = ON_VERTEX.find(([pattern]) => pattern.test(model))?.[1]
  return own !== undefined && protocols.includes(own) ? [own] : protocols
}

/**
 * The dialects to which the calls of each client dialect can be converted, each with a distance. The smaller
 * the distance, the less is lost.
 */
const DISTANCES: {
  readonly [Client in ServedProtocol]: Readonly<Partial<Record<ProtocolName, number>>> &
    (Client extends ClientProtocol ? Readonly<Record<Exclude<ConversionProtocol, Client>, number>> : unknown)
} = {
  chat: { responses: 1, messages: 2, gemini: 3, converse: 4 },
  messages: { responses: 1, gemini: 2, converse: 3, chat: 4 },
  responses: { messages: 1, gemini: 2, converse: 3, chat: 4 },
  gemini: { messages: 1, responses: 2, converse: 3, chat: 4 },
  rerank: {},
}

/**
 * The dialect in which a channel serves the model `name`: the client's own if the channel speaks it,
 * otherwise the nearest one.
 */
export function dialectForChannel(channel: Channel, client: ServedProtocol, name: string): ProtocolName {
  const protocols = channelProtocols(channel, name)
  const [first = client] = protocols
  if (protocols.length === 1) return first
  // A thinking suffix that is not part of a model name of the channel becomes a field of messages requests.
  const hasSuffix = ENDPOINTS[client].hasThinkingSuffix && withoutThinkingSuffix(name) !== undefined
  if (hasSuffix && !channel.models.includes(name)) return 'messages'
  if (protocols.includes(client)) return client
  const distances = DISTANCES[client]
  const distance = (one: ProtocolName): number => distances[one] ?? Infinity
  return protocols.reduce((nearest, one) => (distance(one) < distance(nearest) ? one : nearest))
}
