import type { DroppedFields } from '../../codec.ts'
import type { Conversation, Effort, Thinking, Turn } from '../../conversation.ts'
import {
  displayOf,
  thinkingBudgetOf,
  DEFAULT_EFFORT,
  isThinkingOff,
  disablingEffort,
  requestedEffort,
  THINKING_OFF,
} from '../../thinking.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import { reportDropped } from '../dropped-fields.ts'
import { withEncodableTurns } from './turns.ts'

/** Maximum of output tokens for requests without one, because this protocol requires it. */
const DEFAULT_MAX_TOKENS = 8192
/** Lowest thinking budget in tokens that upstreams accept. */
const MIN_BUDGET = 1024
/** Highest temperature in this protocol. Other protocols allow up to 2. */
const MAX_TEMPERATURE = 1

/** Fields of a messages request that depend on each other. Undefined fields are left out. */
export interface ThinkingAndSampling {
  readonly max_tokens: number
  readonly thinking:
    | { readonly type: 'enabled'; readonly budget_tokens: number; readonly display?: 'summarized' }
    | { readonly type: 'adaptive' | 'disabled'; readonly display?: 'summarized' }
    | undefined
  readonly output_config: { readonly effort: Effort } | undefined
  readonly temperature: number | undefined
  readonly top_p: number | undefined
  readonly top_k: number | undefined
}

type RequestedThinking = Pick<
  Conversation,
  'maxTokens' | 'temperature' | 'topP' | 'topK' | 'toolChoice' | 'webSearch' | 'showsThoughts'
> & {
  readonly thinking: Thinking | undefined
}

/**
 * Encodes thinking, the maximum of output tokens, and sampling, so that an upstream accepts them together.
 * The thinking budget must be below the maximum of output tokens, which is increased if needed. With
 * thinking, no sampling settings are sent. Thinking is left out if a tool call is forced or if the
 * conversation has a prefill. With a budget, it is also left out if the thoughts before the last tool calls
 * are missing.
 */
export function encodeSampling(
  requested: RequestedThinking,
  capabilities: Capabilities,
  turns: readonly Turn[],
  dropped: DroppedFields,
): ThinkingAndSampling {
  const maxTokens = requested.maxTokens ?? DEFAULT_MAX_TOKENS
  const thinking = allowedThinking(requested, knownThinking(requested, capabilities), turns)
  if (!thinking && requested.thinking && !isThinkingOff(requested.thinking))
    reportDropped(dropped, 'thinking')
  if (!capabilities.isKnown && disablingEffort(requested.thinking) === 'minimal')
    reportDropped(dropped, 'thinking')
  const display = displayOf(requested, capabilities)
  switch (thinking?.kind) {
    case 'budget': {
      dropSampling(requested, dropped)
      const budget = Math.max(thinking.tokens, MIN_BUDGET)
      return {
        max_tokens: maxTokens > budget ? maxTokens : budget + maxTokens,
        thinking: { type: 'enabled', budget_tokens: budget, ...display },
        output_config: undefined,
        temperature: capabilities.sampling === 'none' ? undefined : 1,
        top_p: undefined,
        top_k: undefined,
      }
    }
    case 'adaptive':
      dropSampling(requested, dropped)
      return {
        max_tokens: maxTokens,
        thinking: { type: 'adaptive', ...display },
        output_config: thinking.effort && { effort: thinking.effort },
        temperature: undefined,
        top_p: undefined,
        top_k: undefined,
      }
    case 'off':
    case undefined:
      return {
        max_tokens: maxTokens,
        thinking: thinking && { type: 'disabled' },
        output_config: undefined,
        temperature: temperatureOf(requested, dropped),
        top_p: requested.topP,
        top_k: requested.topK,
      }
  }
}

/** Returns the maximum of output tokens that is sent for a conversation. */
export function maxTokensOf(conversation: Conversation, capabilities: Capabilities): number {
  const { turns } = withEncodableTurns(conversation, capabilities, new Set())
  return encodeSampling(conversation, capabilities, turns, new Set()).max_tokens
}

/** Converts the thinking settings to the form that the model supports; undefined if it supports none. */
function knownThinking(
  { thinking: requested, showsThoughts }: RequestedThinking,
  { thinking, alwaysThinks, hidesThoughts }: Capabilities,
): Thinking | undefined {
  // A model that thinks without being asked to still hides its thoughts.
  if (!requested && alwaysThinks && hidesThoughts && showsThoughts)
    return { kind: 'adaptive', effort: undefined }
  if (!requested || thinking === 'none') return undefined
  if (isThinkingOff(requested)) return alwaysThinks ? { kind: 'adaptive', effort: 'low' } : THINKING_OFF
  if (thinking === 'adaptive') return { kind: 'adaptive', effort: requestedEffort(requested) }
  return requested.kind === 'adaptive'
    ? { kind: 'budget', tokens: thinkingBudgetOf(requested.effort ?? DEFAULT_EFFORT) }
    : requested
}

function allowedThinking(
  { toolChoice, webSearch }: RequestedThinking,
  thinking: Thinking | undefined,
  turns: readonly Turn[],
): Thinking | undefined {
  if (!thinking || thinking.kind === 'off') return thinking
  if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool' || webSearch?.isForced) return undefined
  if (turns.at(-1)?.role === 'assistant') return undefined
  return thinking.kind === 'budget' && lacksThoughts(turns) ? undefined : thinking
}

/**
 * Whether the thoughts before the last tool calls are missing. Upstreams require them for thinking with a
 * budget.
 */
function lacksThoughts(turns: readonly Turn[]): boolean {
  const last = turns.findLast(({ role }) => role === 'assistant')
  if (!last?.parts.some(({ kind }) => kind === 'tool-call')) return false
  if (!turns.at(-1)?.parts.some(({ kind }) => kind === 'tool-result')) return false
  const [first] = last.parts
  return first?.kind !== 'thinking' && first?.kind !== 'opaque'
}

/** Returns the temperature, limited to the highest one in this protocol. */
function temperatureOf({ temperature }: RequestedThinking, dropped: DroppedFields): number | undefined {
  if (temperature === undefined || temperature <= MAX_TEMPERATURE) return temperature
  reportDropped(dropped, 'temperature')
  return MAX_TEMPERATURE
}

function dropSampling({ temperature, topP, topK }: RequestedThinking, dropped: DroppedFields): void {
  if (temperature !== undefined && temperature !== 1) reportDropped(dropped, 'temperature')
  if (topP !== undefined && topP !== 1) reportDropped(dropped, 'top_p')
  if (topK !== undefined) reportDropped(dropped, 'top_k')
}

const SUFFIX = '-thinking'
/** Percentage of the maximum of output tokens that may be used for thinking. */
const BUDGET_PERCENT = 80
/**
 * Lowest maximum of output tokens that leaves room for the minimum thinking budget: 80 percent of 1,280 are
 * 1,024.
 */
const MIN_MAX_TOKENS = 1280

/** Returns the model's name without the suffix `-thinking`; undefined if the name has no such suffix. */
export function withoutThinkingSuffix(model: string): string | undefined {
  return model.endsWith(SUFFIX) && model.length > SUFFIX.length ? model.slice(0, -SUFFIX.length) : undefined
}

/**
 * Switches thinking on, because the name of the model has the suffix `-thinking`. This overrides an effort
 * but not a budget in tokens; `docs/api.md: Chat completions`, sampling overrides. The encoder resolves
 * conflicts with other settings.
 */
export function withSuffixThinking(conversation: Conversation, { thinking }: Capabilities): Conversation {
  if (conversation.thinking?.kind === 'budget') return conversation
  if (thinking !== 'budget') return { ...conversation, thinking: { kind: 'adaptive', effort: 'high' } }
  const maxTokens = Math.max(conversation.maxTokens ?? DEFAULT_MAX_TOKENS, MIN_MAX_TOKENS)
  const tokens = Math.floor((maxTokens * BUDGET_PERCENT) / 100)
  return { ...conversation, maxTokens, thinking: { kind: 'budget', tokens } }
}
