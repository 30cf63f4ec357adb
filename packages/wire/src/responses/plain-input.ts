import type { Node, ScannedObject } from '../json/scanned-object.ts'

/**
 * Reports whether a request's input is only messages, without references, reasoning or encrypted content. For
 * most requests one look at each item is enough.
 */
export function hasOnlyMessages(scan: ScannedObject): boolean {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return true
  for (const item of scan.elements(input.node)) if (!isMessage(scan, item)) return false
  return true
}

function isMessage(scan: ScannedObject, item: Node): boolean {
  if (scan.kindOf(item) !== 'object' || scan.memberOf(item, 'role') === undefined) return false
  const type = scan.memberOf(item, 'type')
  const isTyped = type !== undefined && scan.kindOf(type) !== 'null'
  if (isTyped && (scan.kindOf(type) !== 'string' || scan.parse(type) !== 'message')) return false
  return scan.memberOf(item, 'encrypted_content') === undefined
}
