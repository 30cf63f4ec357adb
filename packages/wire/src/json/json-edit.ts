import type { Member, Node, ScannedObject } from './scanned-object.ts'

/**
 * Changes to top-level members. `replace` contains JSON texts by name; members that do not exist are
 * appended. If a name is in both, `replace` wins over `remove`.
 */
export interface Edits {
  readonly remove: readonly string[]
  readonly replace: ReadonlyMap<string, string>
}

/** Replaces the bytes from `from` up to `to` (exclusive) by `text`. */
interface Splice {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Applies the changes and leaves all other bytes as they are. Returns the same Buffer if nothing changes. */
export function applyEdits(bytes: Buffer, scan: ScannedObject, changes: Edits): Buffer {
  const splices = splicesOf(scan, changes)
  if (splices.length === 0) return bytes
  const parts: Buffer[] = []
  let at = 0
  for (const { from, to, text } of splices) {
    parts.push(bytes.subarray(at, from), Buffer.from(text))
    at = to
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}

/** Returns the splices in the order of the document; they do not overlap. */
function splicesOf(scan: ScannedObject, { remove, replace }: Edits): Splice[] {
  const removed = new Set(remove.filter((key) => !replace.has(key)))
  const splices: Splice[] = []
  let lastRemaining: Member | undefined
  let cutFrom: number | undefined
  let cutTo = 0
  for (const member of scan.members.values()) {
    if (removed.has(member.key)) {
      cutFrom ??= member.keyStart
      cutTo = member.end
      continue
    }
    if (cutFrom !== undefined) splices.push({ from: cutFrom, to: member.keyStart, text: '' })
    cutFrom = undefined
    lastRemaining = member
    const text = replace.get(member.key)
    if (text !== undefined) splices.push({ from: member.start, to: member.end, text })
  }
  // If the last members are removed, so is the comma before them.
  if (cutFrom !== undefined) splices.push({ from: lastRemaining?.end ?? cutFrom, to: cutTo, text: '' })
  const added = [...replace]
    .filter(([key]) => !scan.has(key))
    .map(([key, text]) => `${JSON.stringify(key)}:${text}`)
  if (added.length > 0) {
    const at = scan.end - 1
    splices.push({ from: at, to: at, text: (lastRemaining ? ',' : '') + added.join(',') })
  }
  return splices
}

/** What happens to an element: it stays, is removed, or is replaced by a JSON text. */
export type ElementChange = 'stays' | 'goes' | { readonly text: string }

/**
 * Renders an array after applying a change to each of its elements; returns undefined if all of them stay.
 * The bytes of an element that stays are not changed.
 */
export function renderArray(
  scan: ScannedObject,
  array: Node,
  fateOf: (element: Node) => ElementChange,
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

/** Renders an object in which one of its members has another value. The member must exist. */
export function withMember(scan: ScannedObject, object: Node, member: Node, text: string): string {
  const { bytes } = scan
  const before = bytes.toString('utf8', scan.startOf(object), scan.startOf(member))
  const after = bytes.toString('utf8', scan.endOf(member), scan.endOf(object))
  return before + text + after
}

/**
 * Renders an object with only these of its members. Returns its own text if it has no other members, and
 * undefined if it has none of these.
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
  return members.length === count ? scan.textOf(object) : renderObject(members)
}

/** Member of an object as text: its name and the JSON text of its value. */
export type MemberText = readonly [name: string, text: string | undefined]

/**
 * Renders an object with these members, in order; undefined ones are omitted. Values that are given as JSON
 * text are not parsed, because that would reorder numeric keys and lose digits.
 */
export function renderObject(members: readonly MemberText[]): string {
  let text = ''
  for (const [name, value] of members)
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** Renders an object's members as text. Those that JSON.stringify omits are undefined. */
export function membersOf(fields: object): MemberText[] {
  return Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)])
}

/** Renders an array of values that are JSON text. */
export function arrayOf(texts: readonly string[]): string {
  return `[${texts.join(',')}]`
}
