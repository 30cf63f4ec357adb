import type { Dropped } from '../codec.ts'
import type { Conversation, Thinking } from '../conversation.ts'
import { DYNAMIC } from '../thinking-config.ts'
import { budgetOf, isThinkingOff, nearestEffort, offEffort, requestedEffort } from '../thinking.ts'
import type { Capabilities } from '../model-capabilities.ts'
import { drop } from './dropped-fields.ts'

/** Fields of `generationConfig` that depend on each other; undefined ones are omitted. */
interface ThinkingFields {
  readonly maxOutputTokens: number | undefined
  readonly thinkingConfig:
    | {
        readonly includeThoughts?: true
        readonly thinkingBudget?: number
        readonly thinkingLevel?: string
      }
    | undefined
}

/**
 * Encodes thinking and the maximum of output tokens, which here includes thoughts. The model decides whether
 * thinking is a level or a budget. A budget must be below the maximum, which grows if needed. A model that
 * cannot stop thinking gets the smallest amount; a model of which nothing is known gets the smallest level
 * only if the client named it.
 */
export function encodeThinking(
  { thinking, maxTokens }: Pick<Conversation, 'thinking' | 'maxTokens'>,
  capabilities: Capabilities,
  dropped: Dropped,
): ThinkingFields {
  const plain = { maxOutputTokens: maxTokens, thinkingConfig: undefined }
  if (!thinking) return plain
  const isOff = isThinkingOff(thinking)
  if (capabilities.thinking === 'none') {
    if (!isOff) drop(dropped, 'thinking')
    return plain
  }
  const { levels } = capabilities.gemini
  if (levels) {
    const asked = requestedEffort(thinking)
    const level = isOff ? levels[0] : asked && nearestEffort(asked, levels)
    return {
      maxOutputTokens: maxTokens,
      thinkingConfig: {
        ...(!isOff && { includeThoughts: true }),
        ...(level && { thinkingLevel: level.toUpperCase() }),
      },
    }
  }
  if (!capabilities.isKnown && offEffort(thinking) === 'minimal')
    return { ...plain, thinkingConfig: { thinkingLevel: 'MINIMAL' } }
  const budget = budgetFor(thinking, capabilities)
  return {
    maxOutputTokens: maxTokens === undefined || maxTokens > budget ? maxTokens : budget + maxTokens,
    thinkingConfig: { ...(!isOff && { includeThoughts: true }), thinkingBudget: budget },
  }
}

/** Returns the maximum of output tokens that is sent for a conversation. */
export function maxTokensOf(conversation: Conversation, capabilities: Capabilities): number | undefined {
  return encodeThinking(conversation, capabilities, new Set()).maxOutputTokens
}

function budgetFor(thinking: Thinking, { gemini }: Capabilities): number {
  const [min, max] = gemini.budgets
  if (isThinkingOff(thinking)) return gemini.canStopThinking ? 0 : min
  if (thinking.kind === 'adaptive' && thinking.effort === undefined) return DYNAMIC
  const asked = thinking.kind === 'budget' ? thinking.tokens : budgetOf(requestedEffort(thinking) ?? 'medium')
  return Math.min(Math.max(asked, min), max)
}
