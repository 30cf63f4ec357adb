import { usesWebSockets } from '../../domain/records/channel.ts'
import type { CallFeature } from '../../call/life-cycle.ts'
import type { Plans } from '../../call/plan.ts'
import type { LaneTurn } from './provider-lane.ts'
import type { ProviderSockets } from './provider-sockets.ts'

/** Sends turns over WebSockets of their providers, where a channel has them: `docs/websocket.md: Sockets of providers`. */
export function turnsOverSockets(sockets: ProviderSockets): CallFeature<LaneTurn> {
  return {
    concerns: ({ channels }, endpoint) => endpoint === 'responses' && channels.some(usesWebSockets),
    begin: ({ incoming: { transport, request } }) =>
      transport === 'websocket' ? sockets.turnOf(request) : undefined,
    plan({ facts }, plans) {
      // Only over its socket a provider takes requests that generate nothing.
      return facts.generates ? plans : (withSockets(plans, sockets) ?? plans)
    },
    adapted: (turn, _, request, channel) =>
      request.protocol === 'responses' && sockets.reach(channel) ? { ...request, transport: turn } : request,
  }
}

/** The plans with channels that are reached over sockets only; undefined if there are none. */
function withSockets(plans: Plans, sockets: ProviderSockets): Plans | undefined {
  const [first, ...others] = plans
    .map((plan) => ({ ...plan, channels: plan.channels.filter(({ channel }) => sockets.reach(channel)) }))
    .filter(({ channels }) => channels.length > 0)
  return first && [first, ...others]
}
