import type { DroppedFields } from '../../codec.ts'
import type { Conversation, OutputSchema } from '../../conversation.ts'
import { jsonMembersOf, renderObject } from '../../json/json-edit.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import {
  acceptedSchemaName,
  answerToolName,
  withFormatAsInstruction,
  withFormatAsTool,
  type ConversationWithSchema,
} from '../../output-format.ts'
import { formatForClaude } from '../../schemas/accepted-schemas.ts'
import type { EnforcedSchemas } from '../../schemas/closed-schema.ts'
import { reportDropped } from './dropped-fields.ts'
import { withEncodableTurns } from './turns.ts'

/**
 * Adapts the output format to the model: a schema if the model can follow one, otherwise a tool that it must
 * call, otherwise an instruction in the prompt, which is also used for a schema
 * that is too complex to be enforced. `docs/api.md: Chat completions`.
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
  if (capabilities.converse.schema === 'format') {
    const accepted = formatForClaude(format, enforced, dropped)
    if (accepted) return { ...conversation, outputFormat: accepted }
  }
  const name = answerTool(conversation, capabilities)
  if (name !== undefined) return withFormatAsTool(conversation, format, name)
  reportDropped(dropped, 'response_format')
  return withFormatAsInstruction(conversation, format)
}

/**
 * Name of the tool that the model must call, whose input is the text of the reply. Undefined if the model
 * cannot be forced to call a tool, if the conversation has tools or a prefill, or if the schema does not
 * describe an object.
 */
export function answerTool(conversation: Conversation, capabilities: Capabilities): string | undefined {
  const { outputFormat: format, tools } = conversation
  if (format?.kind !== 'json-schema' || capabilities.converse.schema !== 'tool' || tools.length > 0)
    return undefined
  const { turns } = withEncodableTurns(conversation, capabilities, new Set())
  return turns.at(-1)?.role === 'assistant' ? undefined : answerToolName(format)
}

/** Encodes `outputConfig`, in which the schema is written as a string. */
export function encodeOutputFormat({ schema, name, description }: OutputSchema): string {
  const jsonSchema = renderObject(jsonMembersOf({ schema, name: acceptedSchemaName(name), description }))
  const structure = renderObject([['jsonSchema', jsonSchema]])
  return renderObject([
    [
      'textFormat',
      renderObject([
        ['type', '"json_schema"'],
        ['structure', structure],
      ]),
    ],
  ])
}
