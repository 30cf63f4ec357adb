import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { nodeOf, topMember } from './spelling.ts'

/**
 * Whether the contents have nothing but texts: no media, no calls, no thoughts, and nothing that is signed.
 * Most requests can be known for it at once, by a look at each part, where searches would read all bytes.
 */
export function hasOnlyTexts(scan: ScannedObject): boolean {
  const contents = topMember(scan, 'contents')
  if (!contents || scan.kindOf(contents.node) !== 'array') return false
  for (const content of scan.elements(contents.node)) {
    const parts = nodeOf(scan, content, 'parts')
    if (parts === undefined || scan.kindOf(parts) !== 'array') return false
    for (const part of scan.elements(parts)) if (!isText(scan, part)) return false
  }
  return true
}

function isText(scan: ScannedObject, part: Node): boolean {
  return (
    scan.kindOf(part) === 'object' &&
    scan.values(part).length === 1 &&
    scan.memberOf(part, 'text') !== undefined
  )
}
