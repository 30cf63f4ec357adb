import type { Member, ScannedObject } from './scanned-object.ts'

/**
 * Changes to top-level members. `replace` holds JSON text; members that do not exist are appended. If a name
 * is in both, `replace` wins over `remove`.
 */
export interface Edits {
  readonly remove: readonly string[]
  readonly replace: ReadonlyMap<string, string>
}

/** Replacement of `bytes[from, to)` by `text`. */
interface Splice {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Applies the changes and leaves all other bytes as they are. Returns the same Buffer if nothing changes. */
export function edit(bytes: Buffer, scan: ScannedObject, changes: Edits): Buffer {
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

/** Splices in document order; they do not overlap. */
function splicesOf(scan: ScannedObject, { remove, replace }: Edits): Splice[] {
  const removed = new Set(remove.filter((key) => !replace.has(key)))
  const splices: Splice[] = []
  let lastKept: Member | undefined
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
    lastKept = member
    const text = replace.get(member.key)
    if (text !== undefined) splices.push({ from: member.start, to: member.end, text })
  }
  // If the last members are removed, so is the comma before them.
  if (cutFrom !== undefined) splices.push({ from: lastKept?.end ?? cutFrom, to: cutTo, text: '' })
  const added = [...replace]
    .filter(([key]) => !scan.has(key))
    .map(([key, text]) => `${JSON.stringify(key)}:${text}`)
  if (added.length > 0) {
    const at = scan.end - 1
    splices.push({ from: at, to: at, text: (lastKept ? ',' : '') + added.join(',') })
  }
  return splices
}
