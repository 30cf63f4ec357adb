import type { CallFeature } from '../../call/feature.ts'
import type { CallPrompts, PromptMemory } from './prompt-memory.ts'

/** Holds no more for a conversation that continues than its known prompt costs: `docs/ledger.md: Continued conversations`. */
export function promptBounds(memory: PromptMemory): CallFeature<CallPrompts> {
  return {
    begin: ({ caller, plans, payer, amount }) => memory.of(caller.user.id, plans, payer, amount),
    plan: (prompts, plans) => prompts.tightened(plans),
    tried: (prompts, call, plan, candidate) => prompts.hold(call, plan, candidate),
    answered(prompts, _, { target, basis, isReported }) {
      if (basis && isReported) prompts.remember(target.plan, basis)
      return undefined
    },
  }
}
