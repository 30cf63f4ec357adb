/**
 * What the model wrote in a block, whole or as it begins: text, thinking, the name and input of a tool it
 * calls. Each piece that is not empty; results of the provider's own tools were not written by the model.
 */
export function generatedText(block: Readonly<Record<string, unknown>> | undefined): string[] {
  if (!block) return []
  const type = String(block['type'])
  const pieces = [block['text'], block['thinking']]
  if (type === 'compaction') pieces.push(block['content'])
  if (type.endsWith('tool_use')) pieces.push(block['name'], inputText(block['input']))
  return pieces.filter((piece): piece is string => typeof piece === 'string' && piece !== '')
}

/** What a delta adds to a block; undefined where the model wrote nothing (signatures, citations). */
export function deltaText(delta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const key = DELTAS.get(String(delta?.['type']))
  const text = key === undefined ? undefined : delta?.[key]
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** Where a delta of this type holds its text. */
const DELTAS: ReadonlyMap<string, string> = new Map([
  ['text_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['input_json_delta', 'partial_json'],
  ['compaction_delta', 'content'],
])

/** A call's input in a stream begins as `{}`, which says nothing. */
function inputText(input: unknown): string | undefined {
  return typeof input === 'object' && input !== null && Object.keys(input).length > 0
    ? JSON.stringify(input)
    : undefined
}
