import { asFields, asString } from './fields.ts'
import { mentionsIn } from './mentions.ts'
import type { Prompt, Tool } from './prompt.ts'
import type { Random } from './random.ts'
import { argumentsOf } from './tool-arguments.ts'
import { MAX_CALLS, type PlannedCall, planToolCalls } from './plan-tool-calls.ts'

/** A call as the model writes it; `input` is JSON text, or plain text if the tool takes plain text. */
export interface ToolCall {
  readonly tool: Tool
  readonly input: string
}

/** Chooses the tool calls of the next turn; empty if the model replies without tools. */
export function toolCalls(prompt: Prompt, random: Random): ToolCall[] {
  return chosen(prompt).map((call) => {
    const { tool } = call
    const input = argumentsOf(call, prompt, random)
    return { tool, input: tool.takesText ? asString(asFields(input).input) : JSON.stringify(input) }
  })
}

/**
 * Chooses those of the calls that the message asks for that were not made yet; at least one call if the
 * request requires one.
 */
function chosen({
  tools,
  toolChoice,
  callsMade,
  lastUser,
  parallelTools,
  instructions,
}: Prompt): PlannedCall[] {
  if (toolChoice === 'none') return []
  const forced = (all: readonly Tool[]): PlannedCall[] => {
    const { paths } = mentionsIn(lastUser)
    return all.slice(0, 1).map((tool) => ({ tool, path: (paths[callsMade] ?? paths[0])?.text }))
  }
  if (typeof toolChoice === 'object') return forced(tools.filter(({ name }) => name === toolChoice.name))
  const plan = planToolCalls(lastUser, tools, instructions.includes('apply_patch'))
  const ready = plan.slice(callsMade, parallelTools ? MAX_CALLS : callsMade + 1)
  const remaining = ready.filter(({ waits }, at) => at === 0 || !waits)
  if (remaining.length > 0 || toolChoice !== 'required') return remaining
  return plan.length > 0 ? plan.slice(0, 1) : forced(tools)
}
