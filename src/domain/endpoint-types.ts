import type { ProtocolName } from './channel.ts'

/** Endpoint type of a model, as model lists state it: `docs/api.md: Model objects`. */
export type EndpointType = 'vendor' | 'compat'

/** Endpoint types for the protocols of a model's channels; rerank has none. */
export function endpointTypes(protocols: ReadonlySet<ProtocolName>): EndpointType[] {
  return [
    ...(protocols.has('messages') ? (['vendor'] as const) : []),
    ...(protocols.has('chat') ? (['compat'] as const) : []),
  ]
}
