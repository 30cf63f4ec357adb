/** A tool, independent of the protocol; `schema` is a JSON schema of its input. */
export interface Tool {
  readonly name: string
  readonly description?: string
  readonly schema: object
}

type JsonMembers = Readonly<Record<string, unknown>>

/** Reads tools in the format of any protocol; undefined if the text is not an array of tools. */
export function parseToolsJson(text: string): readonly Tool[] | undefined {
  if (text.trim() === '') return []
  try {
    const given: unknown = JSON.parse(text)
    const tools = Array.isArray(given) ? given.map(toolOf) : []
    return Array.isArray(given) && tools.every((tool) => tool !== undefined) ? tools : undefined
  } catch {
    return undefined
  }
}

function toolOf(given: unknown): Tool | undefined {
  if (!isObject(given)) return undefined
  const tool = isObject(given['function']) ? given['function'] : given
  const { name, description } = tool
  if (typeof name !== 'string' || name === '') return undefined
  const schema = tool['parameters'] ?? tool['input_schema'] ?? { type: 'object' }
  if (!isObject(schema)) return undefined
  return { name, schema, ...(typeof description === 'string' && { description }) }
}

function isObject(value: unknown): value is JsonMembers {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
