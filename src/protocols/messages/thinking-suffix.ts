import type { Conversation } from '../conversation.ts'
import { DEFAULT_MAX_TOKENS } from './thinking.ts'

const SUFFIX = '-thinking'
/** Models that decide by themselves how much to think, and take no budget. */
const ADAPTIVE = 'opus-4-7'
/** The part of an answer's tokens that may be thoughts, in percent. */
const BUDGET_PERCENT = 80
/** The least that leaves room for the smallest budget there is: 80 percent of it are 1,024. */
const MIN_MAX_TOKENS = 1280

/** The model that `X-thinking` stands for; undefined for a name without the suffix. */
export function withoutThinkingSuffix(model: string): string | undefined {
  return model.endsWith(SUFFIX) && model.length > SUFFIX.length ? model.slice(0, -SUFFIX.length) : undefined
}

/**
 * What the suffix asks for, whatever else the request says of thinking; `docs/api.md: Chat completions`, sampling
 * overrides. What has to give way to thinking is for the encoder to see to. `model` is the name that carries the suffix.
 */
export function withSuffixThinking(conversation: Conversation, model: string): Conversation {
  if (model.includes(ADAPTIVE)) return { ...conversation, thinking: { kind: 'adaptive', effort: 'high' } }
  const maxTokens = Math.max(conversation.maxTokens ?? DEFAULT_MAX_TOKENS, MIN_MAX_TOKENS)
  const tokens = Math.floor((maxTokens * BUDGET_PERCENT) / 100)
  return { ...conversation, maxTokens, thinking: { kind: 'budget', tokens } }
}
