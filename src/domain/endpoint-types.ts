import type { ProtocolName } from './channel.ts'

/** What a model can be asked by, as its list says: `docs/api.md: Model objects`. */
export type EndpointType = 'vendor' | 'compat'

/** By the protocols of the channels that serve a model; a rerank channel speaks neither. */
export function endpointTypes(spoken: ReadonlySet<ProtocolName>): EndpointType[] {
  return [
    ...(spoken.has('messages') ? (['vendor'] as const) : []),
    ...(spoken.has('chat') ? (['compat'] as const) : []),
  ]
}
