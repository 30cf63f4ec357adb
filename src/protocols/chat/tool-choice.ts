import type { ToolChoice } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { fieldsAt, textAt, wordAt } from './field.ts'

const WORDS = [
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
] as const

const KINDS: ReadonlyMap<string, 'auto' | 'any' | 'none'> = new Map(WORDS.map(([kind, word]) => [word, kind]))
const NAMES = Object.fromEntries(WORDS) as {
  readonly auto: string
  readonly any: string
  readonly none: string
}

/** `tool_choice`; a forced tool of another kind than a function cannot be kept, which is a 400. */
export function decodeToolChoice(value: unknown): ToolChoice {
  if (typeof value === 'string') return { kind: wordAt(KINDS, value, 'tool_choice') }
  const choice = fieldsAt(value, 'tool_choice')
  if (textAt(choice['type'], 'tool_choice.type') !== 'function')
    refuse('tool_choice.type', `'function'`, 'a type that cannot be passed on to this model')
  const chosen = fieldsAt(choice['function'], 'tool_choice.function')
  return { kind: 'tool', name: textAt(chosen['name'], 'tool_choice.function.name') }
}

/** The choice in chat's words. */
export function encodeToolChoice(choice: ToolChoice): unknown {
  if (choice.kind === 'tool') return { type: 'function', function: { name: choice.name } }
  return NAMES[choice.kind]
}
