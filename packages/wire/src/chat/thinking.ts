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
import { asRecord } from '../json/record.ts'
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
 * Decodes the settings of thinking that chat clients send; the first that states how much to think decides:
 * `reasoning: {effort, max_tokens, enabled, exclude}` as routers define it, `thinking: {type, budget_tokens}` as
 * Anthropic, z.ai, DeepSeek and Moonshot do, `reasoning_effort`, and a switch (`thinkingSwitchOf`). In `reasoning`,
 * `enabled: false` turns thinking off, `max_tokens` takes precedence over `effort`, and `enabled: true` alone means
 * medium effort. `value` returns a member of the request.
 */
export function decodeThinking(
  value: (member: string) => unknown,
  dropped: DroppedFields,
): Thinking | undefined {
  const effort = value('reasoning_effort')
  const named = effort === undefined ? undefined : requireEnumValue(EFFORTS, effort, 'reasoning_effort')
  const reasoning = value('reasoning')
  const routed = reasoning === undefined ? undefined : decodeReasoning(reasoning, dropped)
  const { enabled, budget, path } = thinkingSwitchOf(value)
  reportOtherTemplateMembers(value('chat_template_kwargs'), dropped)
  return (
    routed ??
    decodeSwitch(value('thinking'), named) ??
    (enabled === false ? THINKING_OFF : named) ??
    (enabled === true ? enabledWith(budget, path) : undefined)
  )
}

/** The members of `chat_template_kwargs` that `thinkingSwitchOf` reads. */
const TEMPLATE_MEMBERS: ReadonlySet<string> = new Set(['enable_thinking', 'thinking', 'thinking_budget'])

/** A switch of thinking as servers of open models have it. */
interface ThinkingSwitch {
  readonly enabled: boolean | undefined
  /** The number of tokens, unchecked. */
  readonly budget: unknown
  /** The path of the budget. */
  readonly path: string
}

/**
 * The switch in a chat request: `enable_thinking` with `thinking_budget` as Alibaba has them, else the same in
 * `chat_template_kwargs`, whose members vLLM, SGLang and llama.cpp give to the model's template: `enable_thinking` in
 * those of Qwen and GLM, `thinking` in those of DeepSeek, Kimi and Granite
 * (https://docs.vllm.ai/en/latest/features/reasoning_outputs/).
 */
export function thinkingSwitchOf(value: (member: string) => unknown): ThinkingSwitch {
  const template = asRecord(value('chat_template_kwargs'))
  const enabled = [value('enable_thinking'), template?.['enable_thinking'], template?.['thinking']].find(
    (one) => typeof one === 'boolean',
  )
  const budget = nullToUndefined(value('thinking_budget'))
  return budget === undefined
    ? { enabled, budget: template?.['thinking_budget'], path: 'chat_template_kwargs.thinking_budget' }
    : { enabled, budget, path: 'thinking_budget' }
}

function reportOtherTemplateMembers(value: unknown, dropped: DroppedFields): void {
  if (Object.keys(asRecord(value) ?? {}).some((name) => !TEMPLATE_MEMBERS.has(name)))
    reportDropped(dropped, 'chat_template_kwargs')
}

/** The values of `thinking.type`. With `auto`, which Volcengine has, the model decides. */
const SWITCHES: ReadonlyMap<string, 'on' | 'off' | 'unset'> = new Map([
  ['enabled', 'on'],
  ['adaptive', 'on'],
  ['disabled', 'off'],
  ['auto', 'unset'],
])

/** Decodes `thinking`. If it only switches thinking on, `reasoning_effort` states how much. */
function decodeSwitch(value: unknown, named: Thinking | undefined): Thinking | undefined {
  if (value === undefined) return undefined
  const thinking = requireObject(value, 'thinking')
  const type = nullToUndefined(thinking['type'])
  const set = type === undefined ? 'unset' : requireEnumValue(SWITCHES, type, 'thinking.type')
  if (set === 'unset') return undefined
  if (set === 'off') return THINKING_OFF
  const budget = nullToUndefined(thinking['budget_tokens'])
  return budget === undefined && named ? named : enabledWith(budget, 'thinking.budget_tokens')
}

function enabledWith(budget: unknown, path: string): Thinking {
  return nullToUndefined(budget) === undefined
    ? { kind: 'adaptive', effort: DEFAULT_EFFORT }
    : explicitBudget(budget, path)
}

function decodeReasoning(value: unknown, dropped: DroppedFields): Thinking | undefined {
  const reasoning = requireObject(value, 'reasoning')
  const enabled = nullToUndefined(reasoning['enabled'])
  const tokens = nullToUndefined(reasoning['max_tokens'])
  const effort = nullToUndefined(reasoning['effort'])
  if (reasoning['exclude'] === true) reportDropped(dropped, 'reasoning.exclude')
  const named = effort === undefined ? undefined : requireEnumValue(EFFORTS, effort, 'reasoning.effort')
  const budget = tokens === undefined ? undefined : explicitBudget(tokens, 'reasoning.max_tokens')
  if (enabled === undefined) return budget ?? named
  return requireBoolean(enabled, 'reasoning.enabled')
    ? (budget ?? named ?? { kind: 'adaptive', effort: DEFAULT_EFFORT })
    : THINKING_OFF
}

function explicitBudget(tokens: unknown, path: string): Thinking {
  if (!Number.isSafeInteger(tokens) || (tokens as number) < 0)
    refuseField(path, 'a non-negative integer', describeValueKind(tokens))
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
