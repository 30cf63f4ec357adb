import type { Effort, Thinking } from './conversation.ts'

/**
 * Names of efforts in the dialects: `none` switches thinking off, `minimal` is the smallest effort above it.
 */
export type EffortName = 'none' | 'minimal' | Effort

/** Efforts in ascending order, with their budgets in tokens; `docs/api.md: Parameters by model`. */
const BUDGETS = [
  ['low', 1280],
  ['medium', 2048],
  ['high', 4096],
  ['xhigh', 8192],
  ['max', 16_384],
] as const satisfies readonly (readonly [Effort, number])[]

const BUDGET_BY_EFFORT: ReadonlyMap<Effort, number> = new Map(BUDGETS)

const EFFORT_NAMES: readonly EffortName[] = ['none', 'minimal', ...BUDGETS.map(([effort]) => effort)]

/** Effort of a request that asks for thinking without an amount. */
export const DEFAULT_EFFORT: Effort = 'medium'

/** Setting of a request without thinking. */
export const THINKING_OFF: Thinking = { kind: 'off' }

/** Settings of thinking by the name of an effort. */
export const EFFORTS: ReadonlyMap<string, Thinking> = new Map<string, Thinking>([
  ['none', { kind: 'off', said: 'none' }],
  ['minimal', { kind: 'off', said: 'minimal' }],
  ...BUDGETS.map(([effort]): [string, Thinking] => [effort, { kind: 'adaptive', effort }]),
])

/** Budget in tokens of an effort. */
export function budgetOf(effort: Effort): number {
  return BUDGET_BY_EFFORT.get(effort) ?? 0
}

/**
 * Effort that corresponds to a budget. No budget maps to an effort above `high`, because a budget is an upper
 * limit and those efforts have none.
 */
function effortOf(tokens: number): Effort {
  if (tokens < budgetOf('medium')) return 'low'
  return tokens < budgetOf('high') ? 'medium' : 'high'
}

/** The requested effort; undefined if thinking is off or left to the model. */
export function requestedEffort(thinking: Thinking): Effort | undefined {
  if (thinking.kind === 'budget') return effortOf(thinking.tokens)
  return thinking.kind === 'adaptive' ? thinking.effort : undefined
}

/** Reports whether thinking is off; a budget of 0 is off too. */
export function isThinkingOff(thinking: Thinking): boolean {
  return thinking.kind === 'off' || (thinking.kind === 'budget' && thinking.tokens === 0)
}

/** The effort by which a client switched thinking off; undefined if it named none. */
export function offEffort(thinking: Thinking | undefined): EffortName | undefined {
  return thinking?.kind === 'off' ? thinking.said : undefined
}

/**
 * Finds the largest accepted effort that is not above `effort`, or else the smallest. `accepted` is in
 * ascending order and never empty.
 */
export function nearestEffort(effort: Effort, accepted: readonly EffortName[]): EffortName | undefined {
  const max = EFFORT_NAMES.indexOf(effort)
  return accepted.findLast((word) => EFFORT_NAMES.indexOf(word) <= max) ?? accepted[0]
}
