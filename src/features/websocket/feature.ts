import { UPSTREAM_PROTOCOLS } from '../../domain/protocols.ts'
import { type Channel, usesWebSockets } from '../../domain/records/channel.ts'
import type { CallFeature } from '../../call/feature.ts'
import { type Plans, withPromptBound } from '../../call/plan.ts'
import type { LaneTurn } from './provider-lane.ts'
import type { ProviderSockets } from './provider-sockets.ts'

/** Sends turns over WebSockets of their providers, where a channel has them: `docs/websocket.md: Sockets of providers`. */
export function turnsOverSockets(sockets: ProviderSockets): CallFeature<LaneTurn> {
  return {
    concerns: ({ channels }, endpoint) => endpoint === 'responses' && channels.some(usesWebSockets),
    begin: ({ incoming: { transport, request } }) =>
      transport === 'websocket' ? sockets.turnOf(request) : undefined,
    async tried(turn, call, plan, { channel }) {
      const { steering } = turn.facts
      if (!steering || steering.unfinishedTokens === 0 || !turn.runsOver(channel)) return undefined
      const raised = withPromptBound(plan, plan.estimate.promptTokens + steering.unfinishedTokens)
      const isOver = (): boolean => call.response.isAborted
      const refusal = await call.hold.raiseTo(raised.estimate.amount, { waitMs: 0, isOver })
      if (!refusal) call.switchModel(raised)
      return refusal
    },
    keys: (turn, _, { channel }, _model, keys) =>
      turn.facts.steering ? keys.filter((key) => turn.runsOver(channel, key)) : keys,
    plan(turn, plans) {
      const { facts } = turn
      if (facts.steering) return withChannels(plans, (channel) => turn.runsOver(channel)) ?? plans
      // Only over its socket a provider takes requests that generate nothing.
      return facts.generates ? plans : (withChannels(plans, (channel) => sockets.reach(channel)) ?? plans)
    },
    adapted(turn, _, request, channel) {
      // A turn that steers is refused by its lane where it cannot steer, and is never sent otherwise.
      const isSent = UPSTREAM_PROTOCOLS[request.protocol].hasWebSockets && sockets.reach(channel)
      return isSent || turn.facts.steering ? { ...request, transport: turn } : request
    },
  }
}

/** The plans with some of their channels; undefined if none is left. */
function withChannels(plans: Plans, isMeant: (channel: Channel) => boolean): Plans | undefined {
  const [first, ...others] = plans
    .map((plan) => ({ ...plan, channels: plan.channels.filter(({ channel }) => isMeant(channel)) }))
    .filter(({ channels }) => channels.length > 0)
  return first && [first, ...others]
}
