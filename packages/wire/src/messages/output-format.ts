import type { Conversation, OutputFormat, OutputSchema } from '../conversation.ts'
import type { DroppedFields } from '../codec.ts'
import { kindName, refuseField } from '../field-check.ts'
import { renderObject } from '../json/json-edit.ts'
import type { Capabilities } from '../model-capabilities.ts'
import {
  answerToolName,
  withFormatAsInstruction,
  withFormatAsTool,
  type ConversationWithSchema,
} from '../output-format.ts'
import { readSchemaText } from '../field.ts'
import { formatForClaude } from '../schemas/accepted-schemas.ts'
import type { EnforcedSchemas } from '../schemas/closed-schema.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { reportDropped } from './dropped-fields.ts'
import { withEncodableTurns } from './encode/turns.ts'

/**
 * Decodes `output_config.format`, or `output_format` of the beta version; `docs/api.md: Messages`. Throws
 * `invalid_request` with the path of an invalid value.
 */
export function decodeOutputFormat(scan: ScannedObject): OutputFormat | undefined {
  const config = objectAt(scan, scan.span('output_config')?.node, 'output_config')
  const format = config === undefined ? undefined : scan.memberOf(config, 'format')
  return (
    readFormat(scan, scan.span('output_format')?.node, 'output_format') ??
    readFormat(scan, format, 'output_config.format')
  )
}

function readFormat(scan: ScannedObject, node: Node | undefined, path: string): OutputFormat | undefined {
  const format = objectAt(scan, node, path)
  if (format === undefined) return undefined
  const type = scan.memberOf(format, 'type')
  if (type === undefined || scan.parse(type) !== 'json_schema')
    refuseField(`${path}.type`, `'json_schema'`, 'something else')
  const schema = readSchemaText(scan, format, 'schema', path)
  if (schema === undefined) refuseField(`${path}.schema`, 'an object', 'nothing')
  // Messages providers always enforce a schema.
  return { kind: 'json-schema', schema, name: undefined, description: undefined, strict: true }
}

function objectAt(scan: ScannedObject, node: Node | undefined, path: string): Node | undefined {
  if (node === undefined || scan.kindOf(node) === 'null') return undefined
  return scan.kindOf(node) === 'object' ? node : refuseField(path, 'an object', kindName(scan, node))
}

/** Encodes the format as JSON text. */
export function encodeOutputFormat({ schema }: OutputSchema): string {
  return renderObject([
    ['type', '"json_schema"'],
    ['schema', schema],
  ])
}

/**
 * Adapts the output format to the model; `docs/api.md: Chat completions`. A model that cannot be forced to
 * follow a schema must call a tool with this schema instead. If it cannot be forced to call a tool either,
 * the format is written into the system prompt, as is one that is too complex to be enforced.
 */
export function withSupportedFormat(
  conversation: Conversation,
  capabilities: Capabilities,
  enforced: EnforcedSchemas,
  dropped: DroppedFields,
): ConversationWithSchema {
  const { outputFormat: format } = conversation
  if (!format) return { ...conversation, outputFormat: undefined }
  if (format.kind === 'json-object') return withFormatAsInstruction(conversation, format)
  if (capabilities.takesSchema && !hasPrefill(conversation, capabilities)) {
    const accepted = formatForClaude(format, enforced, dropped)
    if (accepted) return { ...conversation, outputFormat: accepted }
  }
  const name = answerTool(conversation, capabilities)
  if (name !== undefined) return { ...withFormatAsTool(conversation, format, name), parallelTools: false }
  reportDropped(dropped, 'response_format')
  return withFormatAsInstruction(conversation, format)
}

/**
 * Name of the tool that a model must call if it cannot follow a schema; the tool's input is the text of the
 * reply. Undefined if the conversation has tools, web search or a prefill, or if the schema does not describe
 * an object.
 */
export function answerTool(conversation: Conversation, capabilities: Capabilities): string | undefined {
  const { outputFormat: format, tools, webSearch } = conversation
  if (format?.kind !== 'json-schema' || capabilities.takesSchema) return undefined
  if (tools.length > 0 || webSearch || hasPrefill(conversation, capabilities)) return undefined
  return answerToolName(format)
}

/** Whether a prefill (a given beginning of the reply) is sent. After one, no model can follow a schema. */
function hasPrefill(conversation: Conversation, capabilities: Capabilities): boolean {
  return withEncodableTurns(conversation, capabilities, new Set()).turns.at(-1)?.role === 'assistant'
}
