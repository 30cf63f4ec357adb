import type { Conversation } from '../conversation.ts'
import type { Capabilities } from '../model-capabilities.ts'
import { DEFAULT_MAX_TOKENS } from './encode/thinking.ts'

const SUFFIX = '-thinking'
/** Percentage of a reply's maximum tokens that may be used for thinking. */
const BUDGET_PERCENT = 80
/** Smallest maximum with room for the smallest budget: 80 percent of it are 1,024. */
const MIN_MAX_TOKENS = 1280

/** Returns the model name without the suffix `-thinking`; undefined if it has no such suffix. */
export function withoutThinkingSuffix(model: string): string | undefined {
  return model.endsWith(SUFFIX) && model.length > SUFFIX.length ? model.slice(0, -SUFFIX.length) : undefined
}

/**
 * Adds the thinking that the suffix requests. It overrides an effort but not a budget in tokens;
 * `docs/api.md: Chat completions`, sampling overrides. The encoder adapts conflicting settings.
 */
export function withSuffixThinking(conversation: Conversation, { thinking }: Capabilities): Conversation {
  if (conversation.thinking?.kind === 'budget') return conversation
  if (thinking !== 'budget') return { ...conversation, thinking: { kind: 'adaptive', effort: 'high' } }
  const maxTokens = Math.max(conversation.maxTokens ?? DEFAULT_MAX_TOKENS, MIN_MAX_TOKENS)
  const tokens = Math.floor((maxTokens * BUDGET_PERCENT) / 100)
  return { ...conversation, maxTokens, thinking: { kind: 'budget', tokens } }
}
