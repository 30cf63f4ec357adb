import type { Dropped } from '../codec.ts'
import type { Conversation, Effort, Thinking, Turn } from '../conversation.ts'
import { budgetOf, DEFAULT_EFFORT, requestedEffort, isThinkingOff, THINKING_OFF } from '../effort.ts'
import type { Capabilities } from '../model-capabilities.ts'
import { drop } from './dropped.ts'
import { encodableTurns } from './encodable-turns.ts'

/** For requests that name no maximum, which this wire demands. */
export const DEFAULT_MAX_TOKENS = 8192
/** The smallest budget that upstreams take. */
const MIN_BUDGET = 1024
/** The highest temperature on this wire; others go to 2. */
const MAX_TEMPERATURE = 1

/** The fields that hang together, as they are on the wire; undefined ones are left out. */
export interface Sampling {
  readonly max_tokens: number
  readonly thinking:
    | { readonly type: 'enabled'; readonly budget_tokens: number }
    | { readonly type: 'adaptive' | 'disabled' }
    | undefined
  readonly output_config: { readonly effort: Effort } | undefined
  readonly temperature: number | undefined
  readonly top_p: number | undefined
  readonly top_k: number | undefined
}

type Asked = Pick<Conversation, 'maxTokens' | 'temperature' | 'topP' | 'topK' | 'toolChoice'> & {
  readonly thinking: Thinking | undefined
}

/**
 * Thinking, the maximum of tokens and sampling, so that an upstream accepts them together: a budget lies
 * below the maximum (which grows by it where it does not), a model that thinks samples in its own way, and it
 * cannot think where a tool is forced on it, where an answer is begun for it, or where a round of tools is
 * under way whose thoughts are not there.
 */
export function encodeSampling(
  asked: Asked,
  capabilities: Capabilities,
  turns: readonly Turn[],
  dropped: Dropped,
): Sampling {
  const maxTokens = asked.maxTokens ?? DEFAULT_MAX_TOKENS
  const thinking = allowedThinking(asked, knownThinking(asked.thinking, capabilities), turns)
  if (!thinking && asked.thinking && !isThinkingOff(asked.thinking)) drop(dropped, 'thinking')
  switch (thinking?.kind) {
    case 'budget': {
      dropSampling(asked, dropped)
      const budget = Math.max(thinking.tokens, MIN_BUDGET)
      return {
        max_tokens: maxTokens > budget ? maxTokens : budget + maxTokens,
        thinking: { type: 'enabled', budget_tokens: budget },
        output_config: undefined,
        temperature: capabilities.sampling === 'none' ? undefined : 1,
        top_p: undefined,
        top_k: undefined,
      }
    }
    case 'adaptive':
      dropSampling(asked, dropped)
      return {
        max_tokens: maxTokens,
        thinking: { type: 'adaptive' },
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
        temperature: temperatureOf(asked, dropped),
        top_p: asked.topP,
        top_k: asked.topK,
      }
  }
}

/** The maximum of tokens that an upstream is told for a conversation. */
export function maxTokensOf(conversation: Conversation, capabilities: Capabilities): number {
  const turns = encodableTurns(conversation.turns, new Set())
  return encodeSampling(conversation, capabilities, turns, new Set()).max_tokens
}

/** The thinking asked for, in the form that the model knows; undefined where it knows none. */
function knownThinking(
  asked: Thinking | undefined,
  { thinking, alwaysThinks }: Capabilities,
): Thinking | undefined {
  if (!asked || thinking === 'none') return undefined
  if (isThinkingOff(asked)) return alwaysThinks ? { kind: 'adaptive', effort: 'low' } : THINKING_OFF
  if (thinking === 'adaptive') return { kind: 'adaptive', effort: requestedEffort(asked) }
  return asked.kind === 'adaptive'
    ? { kind: 'budget', tokens: budgetOf(asked.effort ?? DEFAULT_EFFORT) }
    : asked
}

function allowedThinking(
  { toolChoice }: Asked,
  thinking: Thinking | undefined,
  turns: readonly Turn[],
): Thinking | undefined {
  if (!thinking || thinking.kind === 'off') return thinking
  if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') return undefined
  if (turns.at(-1)?.role === 'assistant') return undefined
  return thinking.kind === 'budget' && lacksThoughts(turns) ? undefined : thinking
}

/**
 * The last call of tools is not preceded by the thoughts that led to it: an upstream that thinks by budget
 * asks for them.
 */
function lacksThoughts(turns: readonly Turn[]): boolean {
  const last = turns.findLast(({ role }) => role === 'assistant')
  if (!last?.parts.some(({ kind }) => kind === 'tool-call')) return false
  if (!turns.at(-1)?.parts.some(({ kind }) => kind === 'tool-result')) return false
  const [first] = last.parts
  return first?.kind !== 'thinking' && first?.kind !== 'opaque'
}

/** As random as this wire can be, for those who ask for more. */
function temperatureOf({ temperature }: Asked, dropped: Dropped): number | undefined {
  if (temperature === undefined || temperature <= MAX_TEMPERATURE) return temperature
  drop(dropped, 'temperature')
  return MAX_TEMPERATURE
}

function dropSampling({ temperature, topP, topK }: Asked, dropped: Dropped): void {
  if (temperature !== undefined && temperature !== 1) drop(dropped, 'temperature')
  if (topP !== undefined && topP !== 1) drop(dropped, 'top_p')
  if (topK !== undefined) drop(dropped, 'top_k')
}
