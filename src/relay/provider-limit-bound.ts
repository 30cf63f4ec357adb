import type { ProviderLimitBound } from '../upstreams/provider-limits.ts'
import type { ChannelPlan, Plan } from './request-stages.ts'

/** Upper bound on the tokens with which a call counts against a provider's limits. */
export function providerLimitBoundOf(
  { estimate }: Plan,
  { outputMaximum = 0, choices }: ChannelPlan,
): ProviderLimitBound {
  return { tokens: estimate.promptTokens + estimate.unknownTokens + outputMaximum * choices }
}

/**
 * Moves channels all of whose keys have reached a limit of their provider behind other channels of equal
 * priority.
 */
export function moveExhaustedKeysLast(
  candidates: { readonly plan: ChannelPlan; readonly isSpent?: true }[],
): void {
  candidates.sort(
    (a, b) =>
      b.plan.channel.priority - a.plan.channel.priority || Number(a.isSpent ?? 0) - Number(b.isSpent ?? 0),
  )
}
