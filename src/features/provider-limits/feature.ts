import type { CallFeature } from '../../call/feature.ts'
import type { ChannelPlan, Plan } from '../../call/request-stages.ts'
import type { ProviderLimitBound, ProviderLimits } from '../../upstreams/provider-limits.ts'

/** Skips keys that have reached a limit that their provider has reported: `docs/configuration.md: Limits of providers`. */
export function providerLimitsOfCalls(limits: ProviderLimits): CallFeature {
  return {
    keys(_, plan, candidate, upstreamModel, keys) {
      const bound = boundOf(plan, candidate)
      const canTake = (key: (typeof keys)[number]): boolean =>
        limits.canTake(candidate.channel, key, upstreamModel, bound)
      return keys.every(canTake) ? keys : keys.filter(canTake)
    },
    attempted(_, { plan }, { channel, key, request, plan: candidate }) {
      if (plan.dialect.isCount) return
      const end = limits.begin(channel, key, request.upstreamModel, boundOf(plan, candidate))
      return { head: end, over: end }
    },
  }
}

/** Upper bound on the tokens with which a call counts against a provider's limits. */
function boundOf({ estimate }: Plan, { outputMaximum = 0, choices }: ChannelPlan): ProviderLimitBound {
  return { tokens: estimate.promptTokens + estimate.unknownTokens + outputMaximum * choices }
}
