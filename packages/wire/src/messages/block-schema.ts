import { type JsonSchema, implies } from '../with-schema.ts'
import type { JsonKind } from '../json/scanned-object.ts'
import { BLOCKS, type Fields, type FieldRule, KNOWN_TO_ALL, SOURCES } from './native/blocks.ts'

/** JSON Schema's names for kinds of values. */
const TYPES: Readonly<Record<JsonKind, string>> = {
  string: 'string',
  number: 'number',
  true: 'boolean',
  false: 'boolean',
  null: 'null',
  array: 'array',
  object: 'object',
}

/** Schema of the values that a field's rule accepts. */
export function fieldSchema({ kinds, optional, emptyText }: FieldRule): JsonSchema {
  const types = [...new Set([...kinds.map((kind) => TYPES[kind]), ...(optional ? ['null'] : [])])]
  return { type: types.length === 1 ? types[0] : types, ...(emptyText && { maxLength: 0 }) }
}

/** Schema of an object whose fields follow these rules. */
export function fieldsSchema(fields: Fields): JsonSchema {
  return {
    type: 'object',
    required: fields.filter(([, { optional }]) => !optional).map(([key]) => key),
    properties: Object.fromEntries(fields.map(([key, rule]) => [key, fieldSchema(rule)])),
  }
}

/** Schema of blocks; other types pass. The content of a tool result is described as blocks of any type. */
export function blocksSchema(types: ReadonlyMap<string, Fields> = BLOCKS): JsonSchema {
  return { type: 'array', items: typedSchema(types) }
}

function typedSchema(types: ReadonlyMap<string, Fields>): JsonSchema {
  const rules = [...types].map(([type, fields]) => {
    const must = fieldsSchema(fields)
    const properties = must['properties'] as Record<string, JsonSchema>
    if (type === 'image') properties['source'] = typedSchema(SOURCES)
    if (type === 'tool_result')
      properties['content'] = { ...properties['content'], items: fieldsSchema(KNOWN_TO_ALL) }
    return implies({ type: 'object', required: ['type'], properties: { type: { const: type } } }, must)
  })
  return { ...fieldsSchema(KNOWN_TO_ALL), allOf: rules }
}
