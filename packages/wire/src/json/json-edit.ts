import type { Member, Node, ScannedObject } from './scanned-object.ts'

/**
 * Changes of top-level members. `remove` contains names, `replace` JSON texts by name. A member that does not
 * exist is appended. A name that is in both is replaced.
 */
export interface MemberEdits {
  readonly remove: readonly string[]
  readonly replace: ReadonlyMap<string, string>
}

/** Replaces the bytes from `from` up to `to` by `text`. */
interface Splice {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Applies the changes and leaves all other bytes as they are. Returns the same Buffer if nothing changes. */
export function applyEdits(bytes: Buffer, scan: ScannedObject, changes: MemberEdits): Buffer {
  const removed = changes.remove.filter((key) => scan.has(key) && !changes.replace.has(key))
  if (removed.length === 0 && changes.replace.size === 0) return bytes
  const splices = splicesOf(scan, removed, changes.replace)
  const parts: Buffer[] = []
  let at = 0
  for (const { from, to, text } of splices) {
    parts.push(bytes.subarray(at, from), Buffer.from(text))
    at = to
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}

/** The replacements in the order of the text. They do not overlap. */
function splicesOf(
  scan: ScannedObject,
  removed: readonly string[],
  replace: MemberEdits['replace'],
): Splice[] {
  const splices: Splice[] = []
  let lastRemaining: Member | undefined
  let cutFrom: number | undefined
  let cutTo = 0
  for (const member of scan.members.values()) {
    if (removed.includes(member.key)) {
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
  // If the last members are removed, the comma after the last remaining member is removed too.
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

/**
 * What happens to an element of an array: it stays, it is removed (`goes`), or it is replaced by a JSON text.
 */
export type ElementChange = 'stays' | 'goes' | { readonly text: string }

/**
 * Writes an array after `change` has decided on each of its elements. Returns undefined if all of them stay.
 * Elements that stay keep their bytes.
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

/** Writes an object with another value for one of its members, which must exist. */
export function replaceMemberValue(scan: ScannedObject, object: Node, member: Node, text: string): string {
  const { bytes } = scan
  const before = bytes.toString('utf8', scan.startOf(object), scan.startOf(member))
  const after = bytes.toString('utf8', scan.endOf(member), scan.endOf(object))
  return before + text + after
}

/** Adds those of these members that an object lacks, at its end. Returns undefined if it has all of them. */
export function withMissingMembers(
  scan: ScannedObject,
  object: Node,
  defaults: Readonly<Record<string, string>>,
): string | undefined {
  const missing = Object.entries(defaults).filter(([name]) => scan.memberOf(object, name) === undefined)
  if (missing.length === 0) return undefined
  const added = renderObject(missing).slice(1)
  const comma = scan.firstKey(object) === undefined ? '' : ','
  return scan.bytes.toString('utf8', scan.startOf(object), scan.endOf(object) - 1) + comma + added
}

/**
 * Writes an object with only these of its members. Returns its own text if it has no other members, and
 * undefined if it has none of them.
 */
export function keepMembers(
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

/** A member of an object: its name and the JSON text of its value. */
export type MemberText = readonly [name: string, text: string | undefined]

/**
 * Writes an object with these members, in order; undefined ones are omitted. Values that are given as JSON
 * text are not parsed, because that would reorder numeric keys and lose digits.
 */
export function renderObject(members: readonly MemberText[]): string {
  let text = ''
  for (const [name, value] of members)
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** Returns the members of an object as text. Members that JSON.stringify would leave out are undefined. */
export function jsonMembersOf(fields: object): MemberText[] {
  return Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)])
}

/** Writes an array of values given as JSON text. */
export function jsonArrayOf(texts: readonly string[]): string {
  return `[${texts.join(',')}]`
}
