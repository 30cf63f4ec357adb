import type { CallBound } from '../upstreams/provider-limits.ts'
import type { ChannelPlan, Plan } from './request-stages.ts'

/** Upper bound on the tokens with which a call counts against a provider's limits. */
export function callBoundOf({ estimate }: Plan, { outputMaximum = 0, choices }: ChannelPlan): CallBound {
  return { tokens: estimate.promptTokens + estimate.unknownTokens + outputMaximum * choices }
}

/**
 * Moves channels all of whose keys have reached a limit of their provider behind other channels of equal
 * priority.
 */
export function moveSpentKeysLast(
  candidates: { readonly plan: ChannelPlan; readonly isSpent?: true }[],
): void {
  candidates.sort(
    (a, b) =>
      b.plan.channel.priority - a.plan.channel.priority || Number(a.isSpent ?? 0) - Number(b.isSpent ?? 0),
  )
}
