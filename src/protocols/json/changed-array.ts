import type { Node, ScannedObject } from './scanned-object.ts'

/** Decision on a value: stays as it is, goes, or is replaced by a JSON text. */
export type Fate = 'stays' | 'goes' | { readonly text: string }

/**
 * Text of an array whose elements meet their fates; undefined if all of them stay. All other bytes of the
 * elements are those that came.
 */
export function changedArray(
  scan: ScannedObject,
  array: Node,
  fateOf: (element: Node) => Fate,
): string | undefined {
  const elements = scan.elements(array)
  const fates = elements.map(fateOf)
  if (fates.every((fate) => fate === 'stays')) return undefined
  const texts = fates.flatMap((fate, index) => {
    if (fate === 'goes') return []
    return [fate === 'stays' ? scan.textOf(elements[index] as Node) : fate.text]
  })
  return `[${texts.join(',')}]`
}

/** Text of an object with another value for one of its members, which must be there. */
export function withMember(scan: ScannedObject, object: Node, member: Node, text: string): string {
  const { bytes } = scan
  const before = bytes.toString('utf8', scan.startOf(object), scan.startOf(member))
  const after = bytes.toString('utf8', scan.endOf(member), scan.endOf(object))
  return before + text + after
}
