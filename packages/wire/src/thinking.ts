import type { Conversation, Effort, Thinking } from './conversation.ts'
import type { Capabilities } from './model-capabilities.ts'
import { refuseField } from './field-check.ts'
import { asRecord } from './json/record.ts'
import { requireEnumValue, requireObject, nullToUndefined, requireText } from './field.ts'

/** Names of efforts in requests: `none` switches thinking off, `minimal` is the lowest effort above it. */
export type EffortName = 'none' | 'minimal' | Effort

/** Efforts in ascending order, each with its budget in tokens; `docs/api.md: Parameters by model`. */
const BUDGETS = [
  ['low', 1280],
  ['medium', 2048],
  ['high', 4096],
  ['xhigh', 8192],
  ['max', 16_384],
] as const satisfies readonly (readonly [Effort, number])[]

const BUDGET_BY_EFFORT: ReadonlyMap<Effort, number> = new Map(BUDGETS)

const EFFORT_NAMES: readonly EffortName[] = ['none', 'minimal', ...BUDGETS.map(([effort]) => effort)]

/** Effort that is used if a request asks for thinking without saying how much. */
export const DEFAULT_EFFORT: Effort = 'medium'

/** Thinking setting of a request that switches thinking off. */
export const THINKING_OFF: Thinking = { kind: 'off' }

/** Thinking settings of a request, by the name of the effort that it states. */
export const EFFORTS: ReadonlyMap<string, Thinking> = new Map<string, Thinking>([
  ['none', { kind: 'off', effort: 'none' }],
  ['minimal', { kind: 'off', effort: 'minimal' }],
  ...BUDGETS.map(([effort]): [string, Thinking] => [effort, { kind: 'adaptive', effort }]),
])

/** Number of thinking tokens that correspond to an effort. */
export function thinkingBudgetOf(effort: Effort): number {
  return BUDGET_BY_EFFORT.get(effort) ?? 0
}

/**
 * Effort that corresponds to a budget of thinking tokens; at most `high`, because a budget is an upper limit
 * and higher efforts have no limit.
 */
function effortOf(tokens: number): Effort {
  if (tokens < thinkingBudgetOf('medium')) return 'low'
  return tokens < thinkingBudgetOf('high') ? 'medium' : 'high'
}

/** The requested effort; undefined if thinking is off or left to the model. */
export function requestedEffort(thinking: Thinking): Effort | undefined {
  if (thinking.kind === 'budget') return effortOf(thinking.tokens)
  return thinking.kind === 'adaptive' ? thinking.effort : undefined
}

/** Whether thinking is switched off. A budget of 0 also counts as off. */
export function isThinkingOff(thinking: Thinking): boolean {
  return thinking.kind === 'off' || (thinking.kind === 'budget' && thinking.tokens === 0)
}

/**
 * The member of a thinking setting with which the model writes its thoughts out; empty if the client does not ask
 * to see them, or the model shows them anyway.
 */
export function displayOf(
  { showsThoughts, thinking }: Pick<Conversation, 'showsThoughts' | 'thinking'>,
  { hidesThoughts }: Pick<Capabilities, 'hidesThoughts'>,
): { readonly display?: 'summarized' } {
  const isWanted = showsThoughts && !(thinking && isThinkingOff(thinking))
  return isWanted && hidesThoughts ? { display: 'summarized' } : {}
}

/** Effort with which a client switched thinking off; undefined if the client did not name an effort. */
export function disablingEffort(thinking: Thinking | undefined): EffortName | undefined {
  return thinking?.kind === 'off' ? thinking.effort : undefined
}

/**
 * Finds the highest accepted effort that is not above `effort`, otherwise the lowest accepted one. `accepted`
 * is in ascending order and not empty.
 */
export function nearestEffort(effort: Effort, accepted: readonly EffortName[]): EffortName | undefined {
  const max = EFFORT_NAMES.indexOf(effort)
  return accepted.findLast((word) => EFFORT_NAMES.indexOf(word) <= max) ?? accepted[0]
}

/** Value of Gemini's thinking budget with which the model decides how much it thinks. */
export const DYNAMIC_BUDGET = -1

/**
 * Reads Gemini's thinking settings, which can be spelled in camel case or snake case. Throws
 * `invalid_request` with the path of an invalid value, or if both a budget and a level are given.
 */
export function decodeThinkingConfig(value: unknown, path: string): Thinking | undefined {
  if (value === undefined) return undefined
  const config = requireObject(value, path)
  const budget = nullToUndefined(config['thinkingBudget']) ?? nullToUndefined(config['thinking_budget'])
  const level = nullToUndefined(config['thinkingLevel']) ?? nullToUndefined(config['thinking_level'])
  if (budget !== undefined && level !== undefined)
    refuseField(`${path}.thinkingLevel`, `either this or 'thinkingBudget'`, 'both')
  if (budget !== undefined) return decodeBudget(budget, path)
  if (level !== undefined) {
    const name = requireText(level, `${path}.thinkingLevel`).toLowerCase()
    if (name !== 'thinking_level_unspecified') return requireEnumValue(EFFORTS, name, `${path}.thinkingLevel`)
  }
  const includes = nullToUndefined(config['includeThoughts']) ?? nullToUndefined(config['include_thoughts'])
  return includes === true ? { kind: 'adaptive', effort: undefined } : undefined
}

/** Whether Gemini's thinking settings ask for the thoughts. */
export function includesThoughts(config: unknown): boolean {
  const { includeThoughts, include_thoughts: other } = asRecord(config) ?? {}
  return (includeThoughts ?? other) === true
}

function decodeBudget(budget: unknown, path: string): Thinking {
  if (budget === DYNAMIC_BUDGET) return { kind: 'adaptive', effort: undefined }
  if (!Number.isSafeInteger(budget) || (budget as number) < 0)
    refuseField(`${path}.thinkingBudget`, '-1, 0 or a positive integer', 'something else')
  return budget === 0 ? THINKING_OFF : { kind: 'budget', tokens: budget as number }
}
