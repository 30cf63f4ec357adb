import type { OutputFormat } from '../conversation.ts'
import { requireEnumValue, requireObject, nullToUndefined, readSchemaText } from '../field.ts'
import { renderObject } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { FORMAT_KINDS, schemaFormat, schemaMembers } from '../output-format.ts'

/**
 * Decodes `text.format`, in which name and schema are direct members. Throws `invalid_request` with the path
 * of an invalid value.
 */
export function decodeOutputFormat(scan: ScannedObject): OutputFormat | undefined {
  const holder = scan.span('text')
  const text = nullToUndefined(scan.value('text'))
  const value = text === undefined ? undefined : nullToUndefined(requireObject(text, 'text')['format'])
  if (!holder || value === undefined) return undefined
  const path = 'text.format'
  const fields = requireObject(value, path)
  const kind = requireEnumValue(FORMAT_KINDS, fields['type'], `${path}.type`)
  if (kind === 'text') return undefined
  if (kind === 'json-object') return { kind }
  return schemaFormat(
    readSchemaText(scan, scan.memberOf(holder.node, 'format'), 'schema', path),
    fields,
    path,
  )
}

/** Encodes the output format as JSON text. */
export function encodeOutputFormat(format: OutputFormat): string {
  if (format.kind === 'json-object') return JSON.stringify({ type: 'json_object' })
  return renderObject([['type', '"json_schema"'], ...schemaMembers(format)])
}
