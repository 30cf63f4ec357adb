import type { Thinking } from './conversation.ts'
import { refuse } from './field-check.ts'
import { enumAt, fieldsAt, present, textAt } from './field.ts'
import { EFFORTS, THINKING_OFF } from './thinking.ts'

/** Budget value for a model that decides itself how much it thinks. */
export const DYNAMIC = -1

/**
 * Reads Gemini's settings of thinking, whose names have two spellings. Throws `invalid_request` that names
 * the path; also if both a budget and a level are given.
 */
export function decodeThinkingConfig(value: unknown, path: string): Thinking | undefined {
  if (value === undefined) return undefined
  const config = fieldsAt(value, path)
  const budget = present(config['thinkingBudget']) ?? present(config['thinking_budget'])
  const level = present(config['thinkingLevel']) ?? present(config['thinking_level'])
  if (budget !== undefined && level !== undefined)
    refuse(`${path}.thinkingLevel`, `either this or 'thinkingBudget'`, 'both')
  if (budget !== undefined) return decodeBudget(budget, path)
  if (level !== undefined) {
    const name = textAt(level, `${path}.thinkingLevel`).toLowerCase()
    if (name !== 'thinking_level_unspecified') return enumAt(EFFORTS, name, `${path}.thinkingLevel`)
  }
  const includes = present(config['includeThoughts']) ?? present(config['include_thoughts'])
  return includes === true ? { kind: 'adaptive', effort: undefined } : undefined
}

function decodeBudget(budget: unknown, path: string): Thinking {
  if (budget === DYNAMIC) return { kind: 'adaptive', effort: undefined }
  if (!Number.isSafeInteger(budget) || (budget as number) < 0)
    refuse(`${path}.thinkingBudget`, '-1, 0 or a positive integer', 'something else')
  return budget === 0 ? THINKING_OFF : { kind: 'budget', tokens: budget as number }
}
