import type { OutputFormat } from '../conversation.ts'
import { booleanAt, enumAt, fieldsAt, present, schemaText, textAt } from '../field.ts'
import { membersOf, objectOf } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

/** Name for a schema without one, because this dialect requires a name. */
const UNNAMED = 'response'

const KINDS: ReadonlyMap<string, OutputFormat['kind'] | 'text'> = new Map<
  string,
  OutputFormat['kind'] | 'text'
>([
  ['text', 'text'],
  ['json_object', 'json-object'],
  ['json_schema', 'json-schema'],
])

/**
 * Decodes `text.format`, whose members are not nested. Throws `invalid_request` with the path of an
 * unreadable value.
 */
export function decodeOutputFormat(scan: ScannedObject): OutputFormat | undefined {
  const holder = scan.span('text')
  const text = present(scan.value('text'))
  const value = text === undefined ? undefined : present(fieldsAt(text, 'text')['format'])
  if (!holder || value === undefined) return undefined
  const path = 'text.format'
  const fields = fieldsAt(value, path)
  const kind = enumAt(KINDS, fields['type'], `${path}.type`)
  if (kind === 'text') return undefined
  const schema =
    kind === 'json-schema'
      ? schemaText(scan, scan.memberOf(holder.node, 'format'), 'schema', path)
      : undefined
  if (schema === undefined) return { kind: 'json-object' }
  const { name, description, strict } = fields
  return {
    kind: 'json-schema',
    schema,
    name: present(name) === undefined ? undefined : textAt(name, `${path}.name`),
    description: present(description) === undefined ? undefined : textAt(description, `${path}.description`),
    strict: present(strict) === undefined ? undefined : booleanAt(strict, `${path}.strict`),
  }
}

/** Encodes the output format as JSON text. */
export function encodeOutputFormat(format: OutputFormat): string {
  if (format.kind === 'json-object') return JSON.stringify({ type: 'json_object' })
  const { name = UNNAMED, description, schema, strict } = format
  return objectOf([
    ...membersOf({ type: 'json_schema', name, description }),
    ['schema', schema],
    ...membersOf({ strict }),
  ])
}
