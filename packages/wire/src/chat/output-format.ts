import type { OutputFormat } from '../conversation.ts'
import { membersOf, objectOf } from '../json/json-edit.ts'
import { booleanAt, enumAt, type Fields, fieldsAt, present, schemaText, textAt } from '../field.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

/** Name for a schema without one, because chat requires a name. */
const UNNAMED = 'response'

type Kind = OutputFormat['kind'] | 'text'

const KINDS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['text', 'text'],
  ['json_object', 'json-object'],
  ['json_schema', 'json-schema'],
])

/**
 * Decodes `response_format`; `docs/api.md: Chat completions`. Some servers accept a schema with
 * `json_object`. A `json_schema` format without a schema means any object. Throws `invalid_request` with the
 * path of an unreadable value.
 */
export function decodeOutputFormat(scan: ScannedObject): OutputFormat | undefined {
  const member = scan.span('response_format')
  const format = present(scan.value('response_format'))
  if (!member || format === undefined) return undefined
  const fields = fieldsAt(format, 'response_format')
  switch (enumAt(KINDS, fields['type'], 'response_format.type')) {
    case 'text':
      return undefined
    case 'json-object':
      return formatOf(schemaText(scan, member.node, 'schema', 'response_format'), {})
    case 'json-schema': {
      const path = 'response_format.json_schema'
      const holder = scan.memberOf(member.node, 'json_schema')
      const described = fieldsAt(fields['json_schema'], path)
      return formatOf(schemaText(scan, holder, 'schema', path), described)
    }
  }
}

function formatOf(schema: string | undefined, { name, description, strict }: Fields): OutputFormat {
  if (schema === undefined) return { kind: 'json-object' }
  const path = 'response_format.json_schema'
  return {
    kind: 'json-schema',
    schema,
    name: present(name) === undefined ? undefined : textAt(name, `${path}.name`),
    description: present(description) === undefined ? undefined : textAt(description, `${path}.description`),
    strict: present(strict) === undefined ? undefined : booleanAt(strict, `${path}.strict`),
  }
}

/** Encodes the format as JSON text. */
export function encodeOutputFormat(format: OutputFormat): string {
  if (format.kind === 'json-object') return JSON.stringify({ type: 'json_object' })
  const { name = UNNAMED, description, schema, strict } = format
  const described = objectOf([
    ...membersOf({ name, description }),
    ['schema', schema],
    ...membersOf({ strict }),
  ])
  return objectOf([
    ['type', '"json_schema"'],
    ['json_schema', described],
  ])
}
