import type { CallBound } from '../upstreams/provider-limits.ts'
import type { ChannelPlan, Plan } from './request-stages.ts'

/** Upper bound on what a call can use of a provider's limits. */
export function boundOf({ estimate }: Plan, { outputMaximum = 0, choices }: ChannelPlan): CallBound {
  return { tokens: estimate.promptTokens + estimate.unknownTokens + outputMaximum * choices }
}

/** Moves channels whose keys cannot take the call behind those of equal priority that can. */
export function moveSpentKeysLast(
  candidates: { readonly plan: ChannelPlan; readonly isSpent?: true }[],
): void {
  candidates.sort(
    (a, b) =>
      b.plan.channel.priority - a.plan.channel.priority || Number(a.isSpent ?? 0) - Number(b.isSpent ?? 0),
  )
}
