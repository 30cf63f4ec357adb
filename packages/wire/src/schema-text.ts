import { kindName, refuse } from './field-check.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

/**
 * Returns the text of the JSON schema in a member; undefined if absent or null. Throws `invalid_request`
 * naming the path if it is not an object.
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
