import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { nodeOf, topMember } from './spelling.ts'

/**
 * Reports whether the contents are only texts, without media, calls, thoughts and signatures. For most
 * requests a look at each part answers that much faster than searches through all bytes.
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
