import { endpointByName } from './endpoint-by-name.ts'
import type { Endpoint } from './endpoints.ts'
import type { Price } from './price.ts'
import { UPSTREAM_PROTOCOLS } from './protocols.ts'
import { type ClientProtocol, type ProtocolName, PROTOCOLS, protocolsThat } from '@sluice/wire/protocols'

/** Endpoint type of a model in model lists: `docs/api.md: Model objects`. */
export type EndpointType = 'vendor' | 'compat'

/** Endpoint types for the protocols of a model's channels. The rerank protocol has none. */
export function endpointTypes(protocols: ReadonlySet<ProtocolName>): EndpointType[] {
  const types = new Set([...protocols].map((name) => UPSTREAM_PROTOCOLS[name].endpointType))
  return (['vendor', 'compat'] as const).filter((type) => types.has(type))
}

/**
 * Endpoints of conversations, which are available whichever conversation protocol the channels speak, because
 * calls are converted.
 */
const CONVERSATIONS = protocolsThat(
  ({ isConversation, hasClients }) => isConversation && hasClients,
) as ClientProtocol[]

/**
 * The endpoints that serve a model, by the protocols of its channels: `docs/api.md: Model objects`. Of the
 * endpoints that are not conversations, a model has the one that its name implies, or otherwise its price.
 */
export function endpointsFor(
  protocols: ReadonlySet<ProtocolName>,
  model: string,
  price: Price | undefined,
): Endpoint[] {
  const named = endpointByName(model) ?? (price && endpointByPrice(price))
  const names = [...protocols]
  const others = new Set<Endpoint>(names.flatMap((name) => UPSTREAM_PROTOCOLS[name].serves))
  if (named !== undefined && others.has(named)) return [named]
  return [
    ...(names.some((name) => PROTOCOLS[name].isConversation)
      ? ([...CONVERSATIONS, 'completions'] as const)
      : []),
    ...(others.has('rerank') ? (['rerank'] as const) : []),
  ]
}

/** Endpoint of a model by its prices; undefined if only tokens and calls have one. */
export function endpointByPrice({ image, characters, second }: Price): Endpoint | undefined {
  if (Object.keys(image).length > 0) return 'images'
  if (characters.digits > 0n) return 'speech'
  return second.digits > 0n ? 'transcriptions' : undefined
}
