import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'
import type { Node, ScannedObject } from '../../protocols/json/scanned-object.ts'
import { claudeVersion, isSince } from '../../protocols/model-version.ts'

const MARK = 'cache_control'
const LIFETIME = 'ttl'
/** Members of a request, of a message and of a result that hold marked blocks. */
const HOLDERS = ['system', 'messages', 'tools', 'content'] as const

/** Whether a model is known to refuse a lifetime of its cache: those before 4.5 do. */
export function refusesLifetimes(model: string): boolean {
  const version = claudeVersion(model)
  return version !== undefined && !isSince(version, 4, 5)
}

/** The body without lifetimes in its cache marks; the same where there are none. All other bytes stay. */
export function withoutLifetimes(body: Buffer): Buffer {
  if (!body.includes(`"${LIFETIME}"`)) return body
  const scan = scanObject(body)
  const marks: Node[] = []
  for (const name of HOLDERS) {
    const member = scan.span(name)
    if (member) collect(scan, member.node, marks)
  }
  const pieces: Buffer[] = []
  let at = 0
  for (const mark of marks.sort((a, b) => scan.startOf(a) - scan.startOf(b))) {
    const bytes = body.subarray(scan.startOf(mark), scan.endOf(mark))
    pieces.push(body.subarray(at, scan.startOf(mark)))
    pieces.push(edit(bytes, scanObject(bytes), { remove: [LIFETIME], replace: new Map() }))
    at = scan.endOf(mark)
  }
  return marks.length === 0 ? body : Buffer.concat([...pieces, body.subarray(at)])
}

/** Finds the marks with a lifetime, in a list of blocks and in those inside them. */
function collect(scan: ScannedObject, node: Node, marks: Node[]): void {
  if (scan.kindOf(node) === 'array') for (const element of scan.elements(node)) collect(scan, element, marks)
  if (scan.kindOf(node) !== 'object') return
  const mark = scan.memberOf(node, MARK)
  if (mark !== undefined && scan.kindOf(mark) === 'object' && scan.memberOf(mark, LIFETIME) !== undefined)
    marks.push(mark)
  const content = scan.memberOf(node, 'content')
  if (content !== undefined) collect(scan, content, marks)
}
