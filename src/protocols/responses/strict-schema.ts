import { asRecord, parseRecord } from '../json/record.ts'

/**
 * Whether a schema keeps to the rules of strict mode, all of whose objects are closed and require each of
 * their members. Here tools are strict unless they say otherwise, as far as their schema allows it; elsewhere
 * they must say so.
 */
export function isStrictSchema(text: string | undefined): boolean {
  const schema = text === undefined ? undefined : parseRecord(text)
  return schema?.['type'] === 'object' && isClosed(schema)
}

function isClosed(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isClosed)
  const schema = asRecord(value)
  if (!schema) return true
  const properties = asRecord(schema['properties'])
  if (schema['type'] === 'object' || properties) {
    const required = schema['required']
    if (schema['additionalProperties'] !== false) return false
    const names = Object.keys(properties ?? {})
    if (names.length > 0 && !hasAll(required, names)) return false
  }
  return Object.values(schema).every(isClosed)
}

function hasAll(list: unknown, names: readonly string[]): boolean {
  if (!Array.isArray(list)) return false
  const listed: ReadonlySet<unknown> = new Set(list)
  return names.every((name) => listed.has(name))
}
