import type { Dropped } from '../codec.ts'
import type { Conversation, OutputFormat } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { fieldsAt, textAt } from '../field.ts'
import { type MemberText, membersOf } from '../json/json-text.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import type { GeminiCapabilities } from '../model-capabilities.ts'
import { objectIn } from './decode-tools.ts'
import { drop } from './dropped-fields.ts'
import { lowerCaseTypes } from './schema-case.ts'
import { either, topMember } from './spelling.ts'

const JSON_TYPE = 'application/json'
const PATH = 'generationConfig'

/**
 * Reads the output format in `generationConfig`. An enumeration as plain text is dropped and reported. Throws
 * `invalid_request` with the path of an unreadable value, and if both kinds of schema are given.
 */
export function decodeOutputFormat(scan: ScannedObject, dropped: Dropped): OutputFormat | undefined {
  const config = topMember(scan, 'generationConfig')
  if (!config) return undefined
  const fields = fieldsAt(scan.value(config.key), PATH)
  const given = either(fields, 'responseMimeType')
  const type = given === undefined ? undefined : textAt(given, `${PATH}.responseMimeType`)
  const json = objectIn(scan, config.node, 'responseJsonSchema', PATH)
  const openApi = objectIn(scan, config.node, 'responseSchema', PATH)
  if (json !== undefined && openApi !== undefined)
    refuse(`${PATH}.responseJsonSchema`, `either this or 'responseSchema'`, 'both')
  if (type !== undefined && type !== JSON_TYPE) {
    if (type !== 'text/plain') drop(dropped, 'response_format')
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
  const type = membersOf({ responseMimeType: JSON_TYPE })
  return format.kind === 'json-object' ? type : [...type, ['responseJsonSchema', format.schema]]
}

/**
 * Moves a format that the model refuses together with tools into the system instruction. Returns other
 * conversations unchanged.
 */
export function withSupportedFormat(
  conversation: Conversation,
  { mixesTools }: GeminiCapabilities,
  dropped: Dropped,
): Conversation {
  const { outputFormat, tools, webSearch, system } = conversation
  if (!outputFormat || mixesTools || (tools.length === 0 && !webSearch)) return conversation
  drop(dropped, 'response_format')
  const only = 'with nothing else: no text before or after it, and no code fence.'
  const text =
    outputFormat.kind === 'json-object'
      ? `Answer with a JSON object and ${only}`
      : `Answer with JSON that matches the following JSON schema, and ${only}\n\n${outputFormat.schema}`
  return { ...conversation, outputFormat: undefined, system: [...system, { kind: 'text', text }] }
}
