import type { Effort, Thinking } from './conversation.ts'

/**
 * Words that a wire may have for an effort: `none` switches thinking off, `minimal` is the least above it.
 */
export type EffortName = 'none' | 'minimal' | Effort

/** From the least to the most, with the budgets in tokens; `docs/api.md: What models take`. */
const BUDGETS = [
  ['low', 1280],
  ['medium', 2048],
  ['high', 4096],
  ['xhigh', 8192],
  ['max', 16_384],
] as const satisfies readonly (readonly [Effort, number])[]

const BUDGET_BY_EFFORT: ReadonlyMap<Effort, number> = new Map(BUDGETS)

const EFFORT_NAMES: readonly EffortName[] = ['none', 'minimal', ...BUDGETS.map(([effort]) => effort)]

/** The effort of a request that asks for thinking and does not say how much. */
export const DEFAULT_EFFORT: Effort = 'medium'

/** No thinking. */
export const THINKING_OFF: Thinking = { kind: 'off' }

/** Every word for an effort, and what it asks for. */
export const EFFORTS: ReadonlyMap<string, Thinking> = new Map<string, Thinking>([
  ['none', THINKING_OFF],
  ['minimal', THINKING_OFF],
  ...BUDGETS.map(([effort]): [string, Thinking] => [effort, { kind: 'adaptive', effort }]),
])

/** The thinking tokens that an effort stands for. */
export function budgetOf(effort: Effort): number {
  return BUDGET_BY_EFFORT.get(effort) ?? 0
}

/**
 * The effort that a budget in tokens stands for. A budget is a bound, and efforts above `high` have none: no
 * budget becomes one of those.
 */
function effortOf(tokens: number): Effort {
  if (tokens < budgetOf('medium')) return 'low'
  return tokens < budgetOf('high') ? 'medium' : 'high'
}

/** The effort that is asked for; undefined where thinking is off, or goes by the model's own default. */
export function requestedEffort(thinking: Thinking): Effort | undefined {
  if (thinking.kind === 'budget') return effortOf(thinking.tokens)
  return thinking.kind === 'adaptive' ? thinking.effort : undefined
}

/** Whether no thinking is asked for: a budget of nothing is none. */
export function isThinkingOff(thinking: Thinking): boolean {
  return thinking.kind === 'off' || (thinking.kind === 'budget' && thinking.tokens === 0)
}

/**
 * The most of the accepted words (least first, never empty) that is not above the effort, else the least of
 * them.
 */
export function nearestEffort(effort: Effort, accepted: readonly EffortName[]): EffortName | undefined {
  const max = EFFORT_NAMES.indexOf(effort)
  return accepted.findLast((word) => EFFORT_NAMES.indexOf(word) <= max) ?? accepted[0]
}
