import type { CallFeature } from '../../call/feature.ts'
import { gatewayTools } from './gateway-tools.ts'
import { respondInRounds, type ResponseRoundServices } from './response-rounds.ts'
import { RoundResponse } from './round-events.ts'

/** Serves tools of type `mcp` with the gateway's own address: `docs/mcp.md: Tools in responses`. */
export function mcpTools(services: () => ResponseRoundServices): CallFeature<RoundResponse> {
  return {
    concerns: (_, endpoint) => endpoint === 'responses',
    divide({ scan, dialect }, settings) {
      // A request to compact a conversation calls no tools.
      if (!dialect.conversation) return undefined
      const tools = gatewayTools(scan, settings)
      return tools.length > 0 ? (request) => respondInRounds(request, tools, services()) : undefined
    },
    begin: ({ incoming: { response } }) => (response instanceof RoundResponse ? response : undefined),
    settled(round, call, { target }) {
      round.call = call
      round.target = target
    },
  }
}
