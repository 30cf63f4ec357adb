import type { DroppedFields, UpstreamModel } from '../codec.ts'
import type { Conversation, OutputFormat } from '../conversation.ts'
import { requireEnumValue, requireObject, nullToUndefined, readSchemaText } from '../field.ts'
import { renderObject } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import {
  FORMAT_KINDS,
  schemaFormat,
  schemaMembers,
  withFormatAsInstruction,
  withWordForJson,
} from '../output-format.ts'
import { formatForServer } from '../schemas/accepted-schemas.ts'
import type { SchemaWork } from '../schemas/schema-work.ts'
import { reportDropped } from './dropped-fields.ts'

/**
 * Decodes `response_format`; `docs/api.md: Chat completions`. Some servers accept a schema with
 * `json_object`. A `json_schema` format without a schema allows any object. Throws `invalid_request` with the
 * path of an invalid value.
 */
export function decodeOutputFormat(scan: ScannedObject): OutputFormat | undefined {
  const member = scan.span('response_format')
  const format = nullToUndefined(scan.value('response_format'))
  if (!member || format === undefined) return undefined
  const fields = requireObject(format, 'response_format')
  const path = 'response_format.json_schema'
  switch (requireEnumValue(FORMAT_KINDS, fields['type'], 'response_format.type')) {
    case 'text':
      return undefined
    case 'json-object':
      return schemaFormat(readSchemaText(scan, member.node, 'schema', 'response_format'), {}, path)
    case 'json-schema': {
      const holder = scan.memberOf(member.node, 'json_schema')
      const described = requireObject(fields['json_schema'], path)
      return schemaFormat(readSchemaText(scan, holder, 'schema', path), described, path)
    }
  }
}

/**
 * Adapts the output format to the server. One that accepts no schemas gets it as an instruction, and must
 * write a JSON object.
 */
export function withSupportedFormat(
  conversation: Conversation,
  upstream: UpstreamModel,
  work: SchemaWork,
  dropped: DroppedFields,
): Conversation {
  const { outputFormat } = conversation
  if (outputFormat?.kind !== 'json-schema') return withWordForJson(conversation)
  if (upstream.server.schemas.takesFormat)
    return { ...conversation, outputFormat: formatForServer(outputFormat, upstream, work, dropped) }
  reportDropped(dropped, 'response_format')
  return { ...withFormatAsInstruction(conversation, outputFormat), outputFormat: { kind: 'json-object' } }
}

/** Encodes the output format as JSON text. */
export function encodeOutputFormat(format: OutputFormat): string {
  if (format.kind === 'json-object') return JSON.stringify({ type: 'json_object' })
  return renderObject([
    ['type', '"json_schema"'],
    ['json_schema', renderObject(schemaMembers(format))],
  ])
}
