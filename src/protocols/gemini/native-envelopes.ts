import { isEnvelope } from '../envelope.ts'
import { changedArray, type Fate, withMember } from '../json/changed-array.ts'
import { edit } from '../json/json-edit.ts'
import { scanObject } from '../json/json-scan.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { mayHoldSealedSignature } from './signature.ts'
import { nodeOf, snakeCase, topMember } from './spelling.ts'

const SIGNATURE = 'thoughtSignature'

/**
 * `contents` without what other providers signed, whose envelopes upstreams of this dialect refuse, as the
 * name of the member and its text; undefined if there is none. Thoughts go, other parts lose the signature
 * alone. A content that has nothing else goes, too.
 */
export function contentsWithoutEnvelopes(
  scan: ScannedObject,
): readonly [key: Member['key'], text: string] | undefined {
  if (!mayHoldSealedSignature(scan.bytes)) return undefined
  const contents = topMember(scan, 'contents')
  if (!contents || scan.kindOf(contents.node) !== 'array') return undefined
  const text = changedArray(scan, contents.node, (content): Fate => {
    const parts = nodeOf(scan, content, 'parts')
    if (parts === undefined || scan.kindOf(parts) !== 'array') return 'stays'
    const changed = changedArray(scan, parts, (part) => fateOf(scan, part))
    if (changed === undefined) return 'stays'
    return changed === '[]' ? 'goes' : { text: withMember(scan, content, parts, changed) }
  })
  return text === undefined ? undefined : [contents.key, text]
}

function fateOf(scan: ScannedObject, part: Node): Fate {
  const signature = nodeOf(scan, part, SIGNATURE)
  if (signature === undefined || scan.kindOf(signature) !== 'string') return 'stays'
  if (!isEnvelope(Buffer.from(String(scan.parse(signature)), 'base64').toString())) return 'stays'
  const thought = nodeOf(scan, part, 'thought')
  if (thought !== undefined && scan.parse(thought) === true) return 'goes'
  const inner = scanObject(Buffer.from(scan.textOf(part)))
  const remove = [SIGNATURE, snakeCase(SIGNATURE)]
  return { text: edit(inner.bytes, inner, { remove, replace: new Map() }).toString() }
}
