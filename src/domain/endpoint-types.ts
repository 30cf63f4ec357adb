import type { Endpoint } from './call-kind.ts'
import { endpointByName } from './endpoint-by-name.ts'
import { endpointByPrice } from './endpoint-by-price.ts'
import type { Price } from './price.ts'
import type { ProtocolName } from './channel.ts'

/** Endpoint type of a model, as model lists state it: `docs/api.md: Model objects`. */
export type EndpointType = 'vendor' | 'compat'

/** Protocols whose models clients reach by chat completions. */
const COMPATIBLE = ['chat', 'responses', 'gemini', 'converse'] as const

/** Endpoint types for the protocols of a model's channels; rerank has none. */
export function endpointTypes(protocols: ReadonlySet<ProtocolName>): EndpointType[] {
  return [
    ...(protocols.has('messages') ? (['vendor'] as const) : []),
    ...(COMPATIBLE.some((one) => protocols.has(one)) ? (['compat'] as const) : []),
  ]
}

/** Endpoints that conversations are converted to, whatever their channels speak. */
const CONVERSATIONS = ['chat', 'messages', 'responses', 'gemini'] as const

/** Protocols of channels that serve them. */
const CONVERSING = [...CONVERSATIONS, 'converse'] as const

/**
 * The endpoints that serve a model, by the protocols of its channels: `docs/api.md: Model objects`. Of the
 * endpoints that are no conversation, a model has the one that its name tells, or else its price.
 */
export function endpointsFor(
  protocols: ReadonlySet<ProtocolName>,
  model: string,
  price: Price | undefined,
): Endpoint[] {
  const named = endpointByName(model) ?? (price && endpointByPrice(price))
  if (named !== undefined && protocols.has('chat')) return [named]
  if (named === 'embeddings' && (protocols.has('gemini') || protocols.has('converse'))) return [named]
  return [
    ...(CONVERSING.some((one) => protocols.has(one)) ? ([...CONVERSATIONS, 'completions'] as const) : []),
    ...(protocols.has('rerank') ? (['rerank'] as const) : []),
  ]
}
