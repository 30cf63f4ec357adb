import type { DroppedFields } from '../../codec.ts'
import type { Conversation, Effort, Thinking, Turn } from '../../conversation.ts'
import { type MemberText, jsonMembersOf, renderObject } from '../../json/json-edit.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import {
  displayOf,
  thinkingBudgetOf,
  DEFAULT_EFFORT,
  isThinkingOff,
  nearestEffort,
  disablingEffort,
  requestedEffort,
} from '../../thinking.ts'
import { reportDropped } from './dropped-fields.ts'
import { withEncodableTurns } from './turns.ts'

/** Highest temperature in Converse. Other protocols allow up to 2. */
const MAX_TEMPERATURE = 1
/** Lowest thinking budget in tokens that Claude accepts. */
const MIN_BUDGET = 1024
/** Efforts that Nova and gpt-oss accept. */
const EFFORTS = ['low', 'medium', 'high'] as const

/** Settings that depend on each other, as in a Converse request. Undefined fields are left out. */
interface Inference {
  readonly maxTokens: number | undefined
  readonly temperature: number | undefined
  readonly topP: number | undefined
  /** Members of `additionalModelRequestFields`, which contains settings of one model family. */
  readonly additional: object
}

/**
 * Encodes thinking, the maximum of tokens and sampling as `inferenceConfig` and
 * `additionalModelRequestFields`, so that the model accepts them together. Reports as dropped what the model
 * does not accept.
 */
export function encodeInference(
  conversation: Conversation,
  capabilities: Capabilities,
  dropped: DroppedFields,
): MemberText[] {
  const { maxTokens, temperature, topP, additional } = inferenceOf(conversation, capabilities, dropped)
  const stopSequences = conversation.stop.filter((sequence) => sequence.trim() !== '')
  if (stopSequences.length < conversation.stop.length) reportDropped(dropped, 'stop')
  const config = {
    maxTokens,
    temperature,
    topP,
    stopSequences: stopSequences.length > 0 ? stopSequences : undefined,
  }
  return [
    ['inferenceConfig', filled(config)],
    ['additionalModelRequestFields', filled(additional)],
  ]
}

/** Returns the maximum of output tokens that is sent for a conversation. */
export function maxTokensOf(conversation: Conversation, capabilities: Capabilities): number | undefined {
  const encodable = withEncodableTurns(conversation, capabilities, new Set())
  return inferenceOf(encodable, capabilities, new Set()).maxTokens
}

function inferenceOf(
  conversation: Conversation,
  capabilities: Capabilities,
  dropped: DroppedFields,
): Inference {
  const { thinking, topP, maxTokens } = conversation
  const { isKnown } = capabilities
  const plain = (additional: object): Inference => ({
    maxTokens,
    temperature: temperatureOf(conversation, dropped),
    topP,
    additional: { ...additional, ...topKOf(conversation, capabilities, dropped) },
  })
  if (!thinking) return plain({})
  switch (capabilities.converse.thinking) {
    case 'claude':
      return claudeInference(conversation, thinking, capabilities, plain, dropped)
    case 'nova': {
      if (isThinkingOff(thinking)) return plain({ reasoningConfig: { type: 'disabled' } })
      const maxReasoningEffort = nearestEffort(requestedEffort(thinking) ?? DEFAULT_EFFORT, EFFORTS)
      const additional = { reasoningConfig: { type: 'enabled', maxReasoningEffort } }
      // With the highest effort, neither a maximum of tokens nor sampling settings are accepted. The maximum
      // must be kept, so a lower effort is sent.
      if (maxReasoningEffort !== 'high') return plain(additional)
      if (maxTokens === undefined) return { ...withoutSampling(conversation, dropped), additional }
      return plain({ reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' } })
    }
    case 'effort':
      return plain({
        reasoning_effort: nearestEffort(
          isThinkingOff(thinking) ? 'low' : (requestedEffort(thinking) ?? DEFAULT_EFFORT),
          EFFORTS,
        ),
      })
    case undefined:
      if (!isThinkingOff(thinking) || (!isKnown && disablingEffort(thinking)))
        reportDropped(dropped, 'thinking')
      return plain({})
  }
}

/**
 * Settings for Claude. With thinking, it accepts neither sampling settings nor a forced call. With a thinking
 * budget, it also refuses earlier tool calls without the thoughts before them.
 */
function claudeInference(
  conversation: Conversation,
  requested: Thinking,
  capabilities: Capabilities,
  plain: (additional: object) => Inference,
  dropped: DroppedFields,
): Inference {
  const { toolChoice, turns, maxTokens } = conversation
  const { thinking: form, alwaysThinks } = capabilities
  const display = displayOf(conversation, capabilities)
  const isForced = toolChoice?.kind === 'any' || toolChoice?.kind === 'tool'
  const isOff = isThinkingOff(requested)
  const needsThoughts = form === 'budget' && lacksThoughts(turns)
  if (form === 'none' || isForced || needsThoughts || turns.at(-1)?.role === 'assistant') {
    if (!isOff) reportDropped(dropped, 'thinking')
    return plain({})
  }
  if (isOff && !alwaysThinks) return plain({ thinking: { type: 'disabled' } })
  const sampling = withoutSampling(conversation, dropped)
  if (form === 'adaptive') {
    const effort: Effort | undefined = isOff ? 'low' : requestedEffort(requested)
    const output = effort && { output_config: { effort } }
    return { ...sampling, additional: { thinking: { type: 'adaptive', ...display }, ...output } }
  }
  const wantedBudget =
    requested.kind === 'budget'
      ? requested.tokens
      : thinkingBudgetOf(requestedEffort(requested) ?? DEFAULT_EFFORT)
  const budget = Math.max(wantedBudget, MIN_BUDGET)
  return {
    ...sampling,
    maxTokens: maxTokens === undefined || maxTokens > budget ? maxTokens : budget + maxTokens,
    additional: { thinking: { type: 'enabled', budget_tokens: budget, ...display } },
  }
}

function lacksThoughts(turns: readonly Turn[]): boolean {
  const last = turns.findLast(({ role }) => role === 'assistant')
  if (!last?.parts.some(({ kind }) => kind === 'tool-call')) return false
  if (!turns.at(-1)?.parts.some(({ kind }) => kind === 'tool-result')) return false
  return !last.parts.some(({ kind }) => kind === 'thinking' || kind === 'opaque')
}

function withoutSampling(
  { maxTokens, temperature, topP, topK }: Conversation,
  dropped: DroppedFields,
): Omit<Inference, 'additional'> {
  if (temperature !== undefined && temperature !== 1) reportDropped(dropped, 'temperature')
  if (topP !== undefined && topP !== 1) reportDropped(dropped, 'top_p')
  if (topK !== undefined) reportDropped(dropped, 'top_k')
  return { maxTokens, temperature: undefined, topP: undefined }
}

function temperatureOf({ temperature }: Conversation, dropped: DroppedFields): number | undefined {
  if (temperature === undefined || temperature <= MAX_TEMPERATURE) return temperature
  reportDropped(dropped, 'temperature')
  return MAX_TEMPERATURE
}

function topKOf({ topK }: Conversation, { converse }: Capabilities, dropped: DroppedFields): object {
  if (topK === undefined) return {}
  switch (converse.topK) {
    case 'top_k':
    case 'k':
      return { [converse.topK]: topK }
    case 'inferenceConfig':
      return { inferenceConfig: { topK } }
    case undefined:
      reportDropped(dropped, 'top_k')
      return {}
  }
}

function filled(fields: object): string | undefined {
  const text = renderObject(jsonMembersOf(fields))
  return text === '{}' ? undefined : text
}
