import type { ToolForm } from '../conversation.ts'

type FormType = Exclude<ToolForm['type'], 'function' | 'custom' | 'tool_search'>

/** Description and schema of the function that stands for a tool with a type of its own. */
interface Described {
  readonly description: string
  /** The JSON schema of its input, as text. */
  readonly schema: string
}

const text = { type: 'string' }
const integer = { type: 'integer' }
const texts = { type: 'array', items: text }

function described(description: string, properties: object, required: readonly string[]): Described {
  return {
    description,
    schema: JSON.stringify({ type: 'object', properties, required, additionalProperties: false }),
  }
}

/** Tools that the client runs, by their type; their input is what the item of a call holds. */
export const TYPED_TOOLS: Readonly<Record<FormType, Described>> = {
  local_shell: described(
    'Runs a command on the local machine and returns its output.',
    {
      command: { ...texts, description: 'The command and its arguments.' },
      working_directory: text,
      timeout_ms: integer,
      env: { type: 'object', additionalProperties: text },
      user: text,
    },
    ['command'],
  ),
  shell: described(
    'Runs shell commands and returns the output of each.',
    { commands: texts, timeout_ms: integer, max_output_length: integer },
    ['commands'],
  ),
  apply_patch: described(
    'Creates, updates or deletes a file by a diff in the V4A format.',
    {
      type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
      path: text,
      diff: { ...text, description: 'The diff; left out where a file is deleted.' },
    },
    ['type', 'path'],
  ),
}

/** The type of a tool that the client runs; undefined for other types. */
export function typedTool(type: string): FormType | undefined {
  return Object.hasOwn(TYPED_TOOLS, type) ? (type as FormType) : undefined
}

const SEARCH_SCHEMA = JSON.stringify({
  type: 'object',
  properties: { query: { type: 'string', description: 'What the tools are wanted for.' } },
  required: ['query'],
})

/** How a search for tools goes by, where the client says no more of it. */
export const TOOL_SEARCH: Described = {
  description: 'Searches for further tools, which can be called once they were found.',
  schema: SEARCH_SCHEMA,
}
