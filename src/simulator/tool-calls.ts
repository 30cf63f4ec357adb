import type { Prompt, Tool } from './prompt.ts'
import type { Random } from './random.ts'
import { valueFor } from './schema-value.ts'
import { keywords, words } from './topic.ts'

/** A call as a model writes it; `input` is JSON text. */
export interface ToolCall {
  readonly name: string
  readonly input: string
}

/** The tools that the model calls now; none where it would rather talk. */
export function toolCalls(prompt: Prompt, random: Random): ToolCall[] {
  return chosen(prompt).map(({ name, schema }) => ({
    name,
    input: JSON.stringify(valueFor({ type: 'object', ...schema }, prompt.lastUser, random)),
  }))
}

function chosen({ tools, toolChoice, toolResult, lastUser, parallelTools }: Prompt): Tool[] {
  if (toolChoice === 'none') return []
  if (typeof toolChoice === 'object') return tools.filter((tool) => tool.name === toolChoice.name).slice(0, 1)
  const fitting = tools.filter((tool) => callsFor(lastUser, tool)).slice(0, parallelTools ? 3 : 1)
  if (toolChoice === 'required') return fitting.length > 0 ? fitting : tools.slice(0, 1)
  return toolResult === undefined ? fitting : []
}

/** True where the message shares a telling word with the tool's name or description, or names the tool. */
function callsFor(message: string, { name, description }: Tool): boolean {
  if (words(message).includes(name)) return true
  const said = new Set(keywords(message).map(stem))
  const spelledOut = name.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll(/[_.-]/g, ' ')
  return keywords(`${spelledOut} ${description}`).some((word) => word.length > 3 && said.has(stem(word)))
}

/** Enough to let `cities` meet `city`. */
function stem(word: string): string {
  return word.replace(/(?:ies|y|es|s|ing|ed)$/, '')
}
