import type { DroppedFields } from '../codec.ts'
import type { Conversation, OutputFormat } from '../conversation.ts'
import { kindName, refuseField } from '../field-check.ts'
import { requireObject, requireText } from '../field.ts'
import { jsonMembersOf, type MemberText } from '../json/json-edit.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { GeminiCapabilities } from '../model-capabilities.ts'
import { withFormatAsInstruction } from '../output-format.ts'
import { fromGoogleSchema } from '../schemas/google-schema.ts'
import { toGeminiSchema } from '../schemas/gemini-schema.ts'
import { reportDropped } from './dropped-fields.ts'
import { memberInEitherSpelling, valueNodeOf, topMember } from './field-spelling.ts'

const JSON_TYPE = 'application/json'
const PATH = 'generationConfig'

/**
 * Reads the output format in `generationConfig`. A format other than JSON and plain text, such as
 * `text/x.enum`, is dropped and reported. Throws `invalid_request` with the path of an invalid value, and if
 * both kinds of schema are given.
 */
export function decodeOutputFormat(scan: ScannedObject, dropped: DroppedFields): OutputFormat | undefined {
  const config = topMember(scan, 'generationConfig')
  if (!config) return undefined
  const fields = requireObject(scan.value(config.key), PATH)
  const given = memberInEitherSpelling(fields, 'responseMimeType')
  const type = given === undefined ? undefined : requireText(given, `${PATH}.responseMimeType`)
  const json = findSchemaObject(scan, config.node, 'responseJsonSchema', PATH)
  const openApi = findSchemaObject(scan, config.node, 'responseSchema', PATH)
  if (json !== undefined && openApi !== undefined)
    refuseField(`${PATH}.responseJsonSchema`, `either this or 'responseSchema'`, 'both')
  if (type !== undefined && type !== JSON_TYPE) {
    if (type !== 'text/plain') reportDropped(dropped, 'response_format')
    return undefined
  }
  const schema =
    json === undefined
      ? openApi === undefined
        ? undefined
        : decodeGoogleSchema(scan, openApi, dropped)
      : scan.textOf(json)
  if (schema === undefined) return type === undefined ? undefined : { kind: 'json-object' }
  // Google always enforces a schema.
  return { kind: 'json-schema', schema, name: undefined, description: undefined, strict: true }
}

/** Encodes the output format as members of `generationConfig`. */
export function encodeOutputFormat(format: OutputFormat | undefined, dropped: DroppedFields): MemberText[] {
  if (!format) return []
  const type = jsonMembersOf({ responseMimeType: JSON_TYPE })
  if (format.kind === 'json-object') return type
  const schema = toGeminiSchema(format.schema)
  if (schema !== format.schema) reportDropped(dropped, 'schema')
  return [...type, ['responseJsonSchema', schema]]
}

/**
 * Moves the format into the system instruction if the model refuses it together with tools. Any other
 * conversation is returned unchanged.
 */
export function withSupportedFormat(
  conversation: Conversation,
  { mixesTools }: GeminiCapabilities,
  dropped: DroppedFields,
): Conversation {
  const { outputFormat, tools, webSearch } = conversation
  if (!outputFormat || mixesTools || (tools.length === 0 && !webSearch)) return conversation
  reportDropped(dropped, 'response_format')
  return withFormatAsInstruction(conversation, outputFormat)
}

/**
 * Returns the text of a schema in Google's form as JSON Schema. Reports it if more than the spelling of the
 * types was changed.
 */
export function decodeGoogleSchema(scan: ScannedObject, node: Node, dropped: DroppedFields): string {
  const { schema, isMoreThanSpelling } = fromGoogleSchema(scan.textOf(node))
  if (isMoreThanSpelling) reportDropped(dropped, 'schema')
  return schema
}

/** Finds a schema in an object; throws `invalid_request` with its path if it is not an object. */
export function findSchemaObject(
  scan: ScannedObject,
  holder: Node | undefined,
  name: string,
  path: string,
): Node | undefined {
  const node = valueNodeOf(scan, holder, name)
  if (node !== undefined && scan.kindOf(node) !== 'object')
    refuseField(`${path}.${name}`, 'an object', kindName(scan, node))
  return node
}
