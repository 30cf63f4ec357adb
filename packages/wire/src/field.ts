import type { TextPart } from './conversation.ts'
import { kindName, refuse } from './field-check.ts'
import { asRecord } from './json/record.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

/** A parsed JSON object. */
export type Fields = Readonly<Record<string, unknown>>

/** Returns the value unchanged, or undefined if it is null. */
export function nullToUndefined(value: unknown): unknown {
  return value === null ? undefined : value
}

/** Reads a string. Throws `invalid_request` with the path for any other value. */
export function textAt(value: unknown, path: string): string {
  return typeof value === 'string' ? value : refuse(path, 'a string', kindOf(value))
}

/** Reads an object. Throws `invalid_request` with the path for any other value. */
export function fieldsAt(value: unknown, path: string): Fields {
  return asRecord(value) ?? refuse(path, 'an object', kindOf(value))
}

/** Reads an array. Throws `invalid_request` with the path for any other value. */
export function listAt(value: unknown, path: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(path, 'an array', kindOf(value))
}

/** Reads a boolean. Throws `invalid_request` with the path for any other value. */
export function booleanAt(value: unknown, path: string): boolean {
  return typeof value === 'boolean' ? value : refuse(path, 'true or false', kindOf(value))
}

/**
 * Reads one of several strings, and returns its meaning. Throws `invalid_request` with the allowed strings
 * for any other value.
 */
export function enumAt<T>(values: ReadonlyMap<string, T>, value: unknown, path: string): T {
  const found = values.get(textAt(value, path))
  return found ?? refuse(path, `one of ${[...values.keys()].join(', ')}`, 'another string')
}

/** Names the type of a value with its article, for a message. The value itself is not named. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/**
 * Returns the text of the JSON schema in a member; undefined if it is absent or null. Throws
 * `invalid_request` with the path if it is not an object.
 */
export function schemaText(
  scan: ScannedObject,
  holder: Node | undefined,
  key: string,
  path: string,
): string | undefined {
  const node = holder === undefined ? undefined : scan.memberOf(holder, key)
  if (node === undefined || scan.kindOf(node) === 'null') return undefined
  if (scan.kindOf(node) !== 'object') refuse(`${path}.${key}`, 'an object', kindName(scan, node))
  return scan.textOf(node)
}

/**
 * Reads the parts of content. A string is one text; null, undefined and empty texts are left out. `read`
 * decodes a part of a given type. Throws `invalid_request` for a part without a type.
 */
export function contentParts<Part>(
  content: unknown,
  path: string,
  read: (type: string, part: Fields, path: string) => readonly Part[],
): (Part | TextPart)[] {
  if (content === undefined || content === null || content === '') return []
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) refuse(path, 'a string or an array of parts', kindOf(content))
  return content.flatMap((value: unknown, index) => {
    const at = `${path}[${index}]`
    const part = fieldsAt(value, at)
    return read(textAt(part['type'], `${at}.type`), part, at)
  })
}
