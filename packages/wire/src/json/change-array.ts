import type { Node, ScannedObject } from './scanned-object.ts'

/** What happens to a value: it stays as it is, is removed, or is replaced by a JSON text. */
export type Fate = 'stays' | 'goes' | { readonly text: string }

/**
 * Renders an array after the decision on each of its elements; returns undefined if all of them stay. The
 * bytes of an element that stays are not changed.
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

/** Renders an object with another value for one of its members. The member must exist. */
export function withMember(scan: ScannedObject, object: Node, member: Node, text: string): string {
  const { bytes } = scan
  const before = bytes.toString('utf8', scan.startOf(object), scan.startOf(member))
  const after = bytes.toString('utf8', scan.endOf(member), scan.endOf(object))
  return before + text + after
}
