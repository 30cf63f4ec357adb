import { objectOf } from './json-text.ts'
import type { Node, ScannedObject } from './scanned-object.ts'

/**
 * Renders an object with only these of its members. Returns its own text if it has no others, and undefined
 * if it has none of them.
 */
export function withMembers(
  scan: ScannedObject,
  object: Node,
  isKept: (name: string) => boolean,
): string | undefined {
  const members: (readonly [string, string])[] = []
  let count = 0
  for (let key = scan.firstKey(object); key !== undefined; key = scan.nextKey(key, object)) {
    const name = scan.keyText(key)
    count++
    if (isKept(name)) members.push([name, scan.textOf(scan.valueOf(key))])
  }
  if (members.length === 0) return undefined
  return members.length === count ? scan.textOf(object) : objectOf(members)
}
