/**
 * Collects the text that the model wrote in a block, whole or at its start: text, thinking, name and input of
 * a tool call. Returns only non-empty pieces. Results of the provider's tools are not generated text.
 */
export function generatedText(block: Readonly<Record<string, unknown>> | undefined): string[] {
  if (!block) return []
  const type = String(block['type'])
  const pieces = [block['text'], block['thinking']]
  if (type === 'compaction') pieces.push(block['content'])
  if (type.endsWith('tool_use')) pieces.push(block['name'], inputText(block['input']))
  return pieces.filter((piece): piece is string => typeof piece === 'string' && piece !== '')
}

/** Returns the text that a delta adds; undefined if it adds none (signatures, citations). */
export function deltaText(delta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const key = DELTAS.get(String(delta?.['type']))
  const text = key === undefined ? undefined : delta?.[key]
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** Name of the member with the text, by type of delta. */
const DELTAS: ReadonlyMap<string, string> = new Map([
  ['text_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['input_json_delta', 'partial_json'],
  ['compaction_delta', 'content'],
])

/** Returns the text of a call's input; undefined for the `{}` at the start of a stream. */
function inputText(input: unknown): string | undefined {
  return typeof input === 'object' && input !== null && Object.keys(input).length > 0
    ? JSON.stringify(input)
    : undefined
}
