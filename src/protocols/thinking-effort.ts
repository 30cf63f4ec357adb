import type { Effort, Thinking } from './conversation.ts'

/**
 * Names that dialects have for an effort: `none` switches thinking off, `minimal` is the smallest above it.
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

/** Settings by the name of an effort. */
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
 * Effort that a budget corresponds to. A budget is a bound, and efforts above `high` have none, so that no
 * budget maps to them.
 */
function effortOf(tokens: number): Effort {
  if (tokens < budgetOf('medium')) return 'low'
  return tokens < budgetOf('high') ? 'medium' : 'high'
}

/** Effort that is asked for; undefined if thinking is off or left to the model. */
export function requestedEffort(thinking: Thinking): Effort | undefined {
  if (thinking.kind === 'budget') return effortOf(thinking.tokens)
  return thinking.kind === 'adaptive' ? thinking.effort : undefined
}

/** Whether thinking is off; a budget of 0 counts as off. */
export function isThinkingOff(thinking: Thinking): boolean {
  return thinking.kind === 'off' || (thinking.kind === 'budget' && thinking.tokens === 0)
}

/** The effort that a client named for thinking that is off; undefined where it named none. */
export function offEffort(thinking: Thinking | undefined): EffortName | undefined {
  return thinking?.kind === 'off' ? thinking.said : undefined
}

/**
 * Finds the largest accepted name that is not above the effort, else the smallest. `accepted` is in ascending
 * order and never empty.
 */
export function nearestEffort(effort: Effort, accepted: readonly EffortName[]): EffortName | undefined {
  const max = EFFORT_NAMES.indexOf(effort)
  return accepted.findLast((word) => EFFORT_NAMES.indexOf(word) <= max) ?? accepted[0]
}
