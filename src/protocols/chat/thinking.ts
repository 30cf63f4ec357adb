import type { Dropped } from '../codec.ts'
import type { Effort, Thinking } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { leaveOut } from './dropped-fields.ts'
import { fieldsAt, flagAt, kindOf, present, wordAt } from './field.ts'

/** `docs/api.md: Limits`, reasoning budgets. The effort back from a budget: below 2048 low, below 4096 medium, else high. */
const BUDGETS = [
  ['low', 1280],
  ['medium', 2048],
  ['high', 4096],
] as const

const OFF: Thinking = { kind: 'off' }

const EFFORTS: ReadonlyMap<string, Thinking> = new Map<string, Thinking>([
  ['minimal', OFF],
  ...BUDGETS.map(([effort, tokens]): [string, Thinking] => [effort, { kind: 'budget', tokens }]),
])

const MEDIUM: Thinking = { kind: 'budget', tokens: 2048 }

/**
 * `reasoning_effort` and the router-style `reasoning: {effort, max_tokens, enabled, exclude}`; where the object says how
 * much to think, that counts. Within it: not enabled is off, `max_tokens` overrides the effort, and enabled alone is medium.
 */
export function decodeThinking(effort: unknown, reasoning: unknown, dropped: Dropped): Thinking | undefined {
  const named = effort === undefined ? undefined : wordAt(EFFORTS, effort, 'reasoning_effort')
  return (reasoning === undefined ? undefined : decodeReasoning(reasoning, dropped)) ?? named
}

function decodeReasoning(value: unknown, dropped: Dropped): Thinking | undefined {
  const reasoning = fieldsAt(value, 'reasoning')
  const enabled = present(reasoning['enabled'])
  const tokens = present(reasoning['max_tokens'])
  const effort = present(reasoning['effort'])
  if (reasoning['exclude'] === true) leaveOut(dropped, 'reasoning.exclude')
  const named = effort === undefined ? undefined : wordAt(EFFORTS, effort, 'reasoning.effort')
  const budget = tokens === undefined ? undefined : budgetOf(tokens)
  if (enabled === undefined) return budget ?? named
  return flagAt(enabled, 'reasoning.enabled') ? (budget ?? named ?? MEDIUM) : OFF
}

function budgetOf(tokens: unknown): Thinking {
  if (!Number.isSafeInteger(tokens) || (tokens as number) < 0)
    refuse('reasoning.max_tokens', 'a non-negative integer', kindOf(tokens))
  return tokens === 0 ? OFF : { kind: 'budget', tokens: tokens as number }
}

/** `reasoning_effort`; undefined where it is better not to speak of it: models that cannot think refuse the field. */
export function encodeEffort(thinking: Thinking | undefined): Effort | undefined {
  if (!thinking || thinking.kind === 'off') return undefined
  if (thinking.kind === 'adaptive') return thinking.effort
  const [, medium, high] = BUDGETS
  if (thinking.tokens < medium[1]) return 'low'
  return thinking.tokens < high[1] ? 'medium' : 'high'
}
