import type { Dropped } from '../../codec.ts'
import type { Conversation, OutputSchema, TextPart, Tool } from '../../conversation.ts'
import { membersOf, objectOf } from '../../json/json-edit.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import { parseRecord } from '../../json/record.ts'
import { drop } from './dropped-fields.ts'

/** Names that upstreams accept. */
const NAME = /^[\w-]{1,64}$/
const UNNAMED_TOOL = 'response'
const JSON_ONLY = 'with nothing else: no text before or after it, and no code fence.'

/** Conversation whose output format, if any, is a schema that the model can follow. */
type WithSchemaFormat = Conversation & { readonly outputFormat: OutputSchema | undefined }

/**
 * Adapts the output format to the model: a schema if it can follow one, otherwise a forced tool, otherwise an
 * instruction. `docs/api.md: Chat completions`.
 */
export function withSupportedFormat(
  conversation: Conversation,
  capabilities: Capabilities,
  dropped: Dropped,
): WithSchemaFormat {
  const { outputFormat: format } = conversation
  if (!format) return { ...conversation, outputFormat: undefined }
  if (format.kind === 'json-object')
    return withInstruction(conversation, `Answer with a JSON object and ${JSON_ONLY}`)
  if (capabilities.converse.schema === 'format') return { ...conversation, outputFormat: format }
  const name = answerTool(conversation, capabilities)
  if (name === undefined) {
    drop(dropped, 'response_format')
    const instruction = `Answer with JSON that matches the following JSON schema, and ${JSON_ONLY}`
    return withInstruction(conversation, `${instruction}\n\n${format.schema}`)
  }
  const { description, schema } = format
  const tool: Tool = { name, description, schema, strict: undefined }
  return { ...conversation, outputFormat: undefined, tools: [tool], toolChoice: { kind: 'tool', name } }
}

/**
 * Name of the tool whose input is the text of the reply, if the model can be forced to call a tool. Undefined
 * if the conversation has tools or a prefill, or if the schema is not an object.
 */
export function answerTool(
  { outputFormat: format, tools, turns }: Conversation,
  { converse }: Capabilities,
): string | undefined {
  if (format?.kind !== 'json-schema' || converse.schema !== 'tool' || tools.length > 0) return undefined
  if (turns.at(-1)?.role === 'assistant') return undefined
  const type = parseRecord(format.schema)?.['type']
  if (type !== undefined && type !== 'object') return undefined
  return format.name !== undefined && NAME.test(format.name) ? format.name : UNNAMED_TOOL
}

/** Encodes `outputConfig`, whose schema is a string. */
export function encodeOutputFormat({ schema, name, description }: OutputSchema): string {
  const jsonSchema = objectOf(
    membersOf({ schema, name: name !== undefined && NAME.test(name) ? name : undefined, description }),
  )
  const structure = objectOf([['jsonSchema', jsonSchema]])
  return objectOf([
    [
      'textFormat',
      objectOf([
        ['type', '"json_schema"'],
        ['structure', structure],
      ]),
    ],
  ])
}

function withInstruction(conversation: Conversation, text: string): WithSchemaFormat {
  const instruction: TextPart = { kind: 'text', text }
  return { ...conversation, outputFormat: undefined, system: [...conversation.system, instruction] }
}
