import type { TextPart } from './conversation.ts'
import { kindName, refuseField } from './field-check.ts'
import { asRecord } from './json/record.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

/** A parsed JSON object. */
export type Fields = Readonly<Record<string, unknown>>

/** Returns the value unchanged, or undefined if it is null. */
export function nullToUndefined(value: unknown): unknown {
  return value === null ? undefined : value
}

/** Whether an object has members, other than null, that are not among the known ones. */
export function hasOtherMembers(fields: Fields, known: ReadonlySet<string>): boolean {
  return Object.entries(fields).some(([key, value]) => !known.has(key) && value !== null)
}

/** Reads a string. Throws `invalid_request` with the path for any other value. */
export function requireText(value: unknown, path: string): string {
  return typeof value === 'string' ? value : refuseField(path, 'a string', describeValueKind(value))
}

/** Reads an object. Throws `invalid_request` with the path for any other value. */
export function requireObject(value: unknown, path: string): Fields {
  return asRecord(value) ?? refuseField(path, 'an object', describeValueKind(value))
}

/** Reads an array. Throws `invalid_request` with the path for any other value. */
export function requireArray(value: unknown, path: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuseField(path, 'an array', describeValueKind(value))
}

/** Reads a boolean. Throws `invalid_request` with the path for any other value. */
export function requireBoolean(value: unknown, path: string): boolean {
  return typeof value === 'boolean' ? value : refuseField(path, 'true or false', describeValueKind(value))
}

/**
 * Reads one of several strings, and returns its meaning. Throws `invalid_request` with the allowed strings
 * for any other value.
 */
export function requireEnumValue<T>(values: ReadonlyMap<string, T>, value: unknown, path: string): T {
  const found = values.get(requireText(value, path))
  return found ?? refuseField(path, `one of ${[...values.keys()].join(', ')}`, 'another string')
}

/** Names the type of a value with its article, for a message. The value itself is not named. */
export function describeValueKind(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/**
 * Returns the text of the JSON schema in a member; undefined if it is absent or null. Throws
 * `invalid_request` with the path if it is not an object.
 */
export function readSchemaText(
  scan: ScannedObject,
  holder: Node | undefined,
  key: string,
  path: string,
): string | undefined {
  const node = holder === undefined ? undefined : scan.memberOf(holder, key)
  if (node === undefined || scan.kindOf(node) === 'null') return undefined
  if (scan.kindOf(node) !== 'object') refuseField(`${path}.${key}`, 'an object', kindName(scan, node))
  return scan.textOf(node)
}

/**
 * Reads the parts of content. A string is one text; null, undefined and empty texts are left out. `read`
 * decodes a part of a given type. Throws `invalid_request` for a part without a type.
 */
export function readContentParts<Part>(
  content: unknown,
  path: string,
  read: (type: string, part: Fields, path: string) => readonly Part[],
): (Part | TextPart)[] {
  if (content === undefined || content === null || content === '') return []
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) refuseField(path, 'a string or an array of parts', describeValueKind(content))
  return content.flatMap((value: unknown, index) => {
    const at = `${path}[${index}]`
    const part = requireObject(value, at)
    return read(requireText(part['type'], `${at}.type`), part, at)
  })
}
