import type { DroppedFields } from '../codec.ts'
import type { Conversation, Thinking } from '../conversation.ts'
import {
  DEFAULT_EFFORT,
  EFFORTS,
  type EffortName,
  requestedEffort,
  isThinkingOff,
  nearestEffort,
  disablingEffort,
  THINKING_OFF,
} from '../thinking.ts'
import { refuseField } from '../field-check.ts'
import type { Capabilities } from '../model-capabilities.ts'
import { reportDropped } from './dropped-fields.ts'
import {
  requireObject,
  requireBoolean,
  describeValueKind,
  nullToUndefined,
  requireEnumValue,
} from '../field.ts'

/** The efforts that every upstream with an effort setting accepts. */
const COMMON: readonly EffortName[] = ['low', 'medium', 'high']

/**
 * Decodes `reasoning_effort`, and `reasoning: {effort, max_tokens, enabled, exclude}` as routers define it.
 * If `reasoning` states how much to think, `reasoning_effort` is ignored. In `reasoning`, `enabled: false`
 * turns thinking off, `max_tokens` takes precedence over `effort`, and `enabled: true` alone means medium
 * effort.
 */
export function decodeThinking(
  effort: unknown,
  reasoning: unknown,
  dropped: DroppedFields,
): Thinking | undefined {
  const named = effort === undefined ? undefined : requireEnumValue(EFFORTS, effort, 'reasoning_effort')
  return (reasoning === undefined ? undefined : decodeReasoning(reasoning, dropped)) ?? named
}

function decodeReasoning(value: unknown, dropped: DroppedFields): Thinking | undefined {
  const reasoning = requireObject(value, 'reasoning')
  const enabled = nullToUndefined(reasoning['enabled'])
  const tokens = nullToUndefined(reasoning['max_tokens'])
  const effort = nullToUndefined(reasoning['effort'])
  if (reasoning['exclude'] === true) reportDropped(dropped, 'reasoning.exclude')
  const named = effort === undefined ? undefined : requireEnumValue(EFFORTS, effort, 'reasoning.effort')
  const budget = tokens === undefined ? undefined : explicitBudget(tokens)
  if (enabled === undefined) return budget ?? named
  return requireBoolean(enabled, 'reasoning.enabled')
    ? (budget ?? named ?? { kind: 'adaptive', effort: DEFAULT_EFFORT })
    : THINKING_OFF
}

function explicitBudget(tokens: unknown): Thinking {
  if (!Number.isSafeInteger(tokens) || (tokens as number) < 0)
    refuseField('reasoning.max_tokens', 'a non-negative integer', describeValueKind(tokens))
  return { kind: 'budget', tokens: tokens as number }
}

/**
 * Encodes `reasoning_effort` as the nearest effort that the model accepts. If thinking is off and the model's
 * efforts are not known, the value that the client sent is used, if any, because models without thinking
 * refuse the field. If the model does not think, the field is omitted and reported as dropped.
 */
export function encodeEffort(
  { thinking, tools }: Pick<Conversation, 'thinking' | 'tools'>,
  capabilities: Capabilities,
  dropped: DroppedFields,
): EffortName | undefined {
  const { efforts } = capabilities
  const isRequested = thinking !== undefined && !isThinkingOff(thinking)
  const mustBeNone = capabilities.toolsNeedNoEffort && tools.length > 0
  if (mustBeNone || capabilities.thinking === 'none') {
    if (isRequested) reportDropped(dropped, 'thinking')
    return mustBeNone ? 'none' : undefined
  }
  if (!isRequested) return thinking && (efforts ? efforts[0] : disablingEffort(thinking))
  const effort = requestedEffort(thinking)
  return effort && nearestEffort(effort, efforts ?? COMMON)
}
