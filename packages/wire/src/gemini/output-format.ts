import type { DroppedFields } from '../codec.ts'
import type { Conversation, OutputFormat } from '../conversation.ts'
import { kindName, refuseField } from '../field-check.ts'
import { requireObject, requireText } from '../field.ts'
import { jsonMembersOf, type MemberText } from '../json/json-edit.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { GeminiCapabilities } from '../model-capabilities.ts'
import { withFormatAsInstruction } from '../output-format.ts'
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
        : lowerCaseTypes(scan, openApi)
      : scan.textOf(json)
  if (schema === undefined) return type === undefined ? undefined : { kind: 'json-object' }
  return { kind: 'json-schema', schema, name: undefined, description: undefined, strict: undefined }
}

/** Encodes the output format as members of `generationConfig`. */
export function encodeOutputFormat(format: OutputFormat | undefined): MemberText[] {
  if (!format) return []
  const type = jsonMembersOf({ responseMimeType: JSON_TYPE })
  return format.kind === 'json-object' ? type : [...type, ['responseJsonSchema', format.schema]]
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

/** Names of types as OpenAPI writes them. Other protocols use lower case. */
const TYPES: ReadonlySet<unknown> = new Set([
  'ARRAY',
  'BOOLEAN',
  'INTEGER',
  'NULL',
  'NUMBER',
  'OBJECT',
  'STRING',
])

/** Members of a schema that contain one schema or a list of schemas. */
const SCHEMAS = ['items', 'additionalProperties', 'not', 'anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
/** Members of a schema that contain schemas by name. */
const NAMED_SCHEMAS = ['properties', 'patternProperties', '$defs', 'definitions', 'defs'] as const

const UPPER_A = 0x41
const UPPER_Z = 0x5a
const TO_LOWER = 0x20

/**
 * Returns the text of a schema in OpenAPI's style with the names of types in lower case. All other bytes stay
 * unchanged, because names of properties, enumerated values and defaults may look like types.
 */
export function lowerCaseTypes(scan: ScannedObject, schema: Node): string {
  const start = scan.startOf(schema)
  const copy = Buffer.from(scan.bytes.subarray(start, scan.endOf(schema)))
  for (const type of typesIn(scan, schema)) {
    if (scan.kindOf(type) !== 'string' || !TYPES.has(scan.parse(type))) continue
    for (let at = scan.startOf(type) - start; at < scan.endOf(type) - start; at++) {
      const byte = copy[at] as number
      if (byte >= UPPER_A && byte <= UPPER_Z) copy[at] = byte + TO_LOWER
    }
  }
  return copy.toString()
}

/** Finds the values of `type` in a schema and in the schemas inside it. */
function typesIn(scan: ScannedObject, node: Node): Node[] {
  if (scan.kindOf(node) === 'array') return scan.elements(node).flatMap((element) => typesIn(scan, element))
  if (scan.kindOf(node) !== 'object') return []
  const type = scan.memberOf(node, 'type')
  const own = type === undefined ? [] : scan.kindOf(type) === 'array' ? scan.elements(type) : [type]
  const inner = SCHEMAS.flatMap((name) => scan.memberOf(node, name) ?? [])
  const named = NAMED_SCHEMAS.flatMap((name) => {
    const holder = scan.memberOf(node, name)
    return holder !== undefined && scan.kindOf(holder) === 'object' ? scan.values(holder) : []
  })
  return [...own, ...[...inner, ...named].flatMap((one) => typesIn(scan, one))]
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
