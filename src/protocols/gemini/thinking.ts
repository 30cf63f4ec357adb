import type { Dropped } from '../codec.ts'
import type { Conversation, Thinking } from '../conversation.ts'
import {
  EFFORTS,
  budgetOf,
  isThinkingOff,
  nearestEffort,
  requestedEffort,
  THINKING_OFF,
} from '../thinking-effort.ts'
import { refuse } from '../field-check.ts'
import { enumAt, fieldsAt, textAt } from '../field.ts'
import type { Capabilities } from '../model-capabilities.ts'
import { drop } from './dropped.ts'
import { either } from './spelling.ts'

const PATH = 'generationConfig.thinkingConfig'

/** Budget of a model that decides itself how much it thinks. */
const DYNAMIC = -1

/** Interdependent fields of `generationConfig`; undefined ones are left out. */
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

/** Reads `thinkingConfig`. Throws `invalid_request` naming the path, and for a budget beside a level. */
export function decodeThinking(value: unknown): Thinking | undefined {
  if (value === undefined) return undefined
  const config = fieldsAt(value, PATH)
  const budget = either(config, 'thinkingBudget')
  const level = either(config, 'thinkingLevel')
  if (budget !== undefined && level !== undefined)
    refuse(`${PATH}.thinkingLevel`, `either this or 'thinkingBudget'`, 'both')
  if (budget !== undefined) return decodeBudget(budget)
  if (level !== undefined) {
    const name = textAt(level, `${PATH}.thinkingLevel`).toLowerCase()
    if (name !== 'thinking_level_unspecified') return enumAt(EFFORTS, name, `${PATH}.thinkingLevel`)
  }
  return either(config, 'includeThoughts') === true ? { kind: 'adaptive', effort: undefined } : undefined
}

function decodeBudget(budget: unknown): Thinking {
  if (budget === DYNAMIC) return { kind: 'adaptive', effort: undefined }
  if (!Number.isSafeInteger(budget) || (budget as number) < 0)
    refuse(`${PATH}.thinkingBudget`, '-1, 0 or a positive integer', 'something else')
  return budget === 0 ? THINKING_OFF : { kind: 'budget', tokens: budget as number }
}

/**
 * Encodes thinking and the maximum of tokens, of which thoughts are a part here: by level or by budget, as
 * the model takes it. A budget is below the maximum, which grows if needed. A model that cannot do without
 * thinking gets the least.
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
  const budget = budgetFor(thinking, capabilities)
  return {
    maxOutputTokens: maxTokens === undefined || maxTokens > budget ? maxTokens : budget + maxTokens,
    thinkingConfig: { ...(!isOff && { includeThoughts: true }), thinkingBudget: budget },
  }
}

/** Returns the maximum of tokens that is sent for a conversation. */
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
