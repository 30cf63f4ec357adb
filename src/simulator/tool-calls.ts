import { mentionsIn } from './mentions.ts'
import type { Prompt, Tool } from './prompt.ts'
import type { Random } from './random.ts'
import { argumentsOf } from './tool-arguments.ts'
import { MAX_CALLS, type PlannedCall, planOf } from './tool-plan.ts'

/** A call as a model writes it; `input` is JSON text. */
export interface ToolCall {
  readonly name: string
  readonly input: string
}

/** The tools that the model calls now; none where it would rather talk. */
export function toolCalls(prompt: Prompt, random: Random): ToolCall[] {
  return chosen(prompt).map((call) => ({
    name: call.tool.name,
    input: JSON.stringify(argumentsOf(call, prompt, random)),
  }))
}

/** The calls left of the message's plan; where a call is required, there is always one. */
function chosen({ tools, toolChoice, callsMade, lastUser, parallelTools }: Prompt): PlannedCall[] {
  if (toolChoice === 'none') return []
  const forced = (all: readonly Tool[]): PlannedCall[] => {
    const { paths } = mentionsIn(lastUser)
    return all.slice(0, 1).map((tool) => ({ tool, path: (paths[callsMade] ?? paths[0])?.text }))
  }
  if (typeof toolChoice === 'object') return forced(tools.filter(({ name }) => name === toolChoice.name))
  const plan = planOf(lastUser, tools)
  const left = plan.slice(callsMade, parallelTools ? MAX_CALLS : callsMade + 1)
  if (left.length > 0 || toolChoice !== 'required') return left
  return plan.length > 0 ? plan.slice(0, 1) : forced(tools)
}
