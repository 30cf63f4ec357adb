import type { Fields } from './field.ts'
import { asRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Parses the tools of a request whose `type` is not one of these. The others are not parsed: the schemas of a
 * coding agent's functions are a large part of its requests.
 */
export function toolsBesides(scan: ScannedObject, types: ReadonlySet<unknown>): readonly Fields[] {
  const list = scan.span('tools')
  if (!list || scan.kindOf(list.node) !== 'array') return []
  return scan.elements(list.node).flatMap((tool): Fields[] => {
    if (scan.kindOf(tool) !== 'object') return []
    const type = scan.memberOf(tool, 'type')
    return type === undefined || types.has(scan.parse(type)) ? [] : [asRecord(scan.parse(tool)) ?? {}]
  })
}
