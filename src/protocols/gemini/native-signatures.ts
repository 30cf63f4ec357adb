import { isEnvelope } from '../envelope.ts'
import { changedArray, type Fate, withMember } from '../json/changed-array.ts'
import { edit } from '../json/json-edit.ts'
import { scanObject } from '../json/json-scan.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { mayHoldSealedSignature, UNSIGNED_CALL } from './signature.ts'
import { nodeOf, snakeCase, topMember } from './spelling.ts'

const SIGNATURE = 'thoughtSignature'

const CALL = 'functionCall'
/** Beginning of a call's name in both spellings, and of an escape in a name: a body without them has none. */
const CALL_MARKS = ['"function', '\\u'].map((mark) => Buffer.from(mark))

/**
 * `contents` with signatures that the upstream accepts, as the name of the member and its text; undefined if
 * they can stay. Parts that other providers signed lose the signature, which is in an envelope; thoughts go,
 * and so does a content that has nothing else. If `isRequired`, the first call of each step gets the
 * documented stand-in where it has no signature: such a turn comes from elsewhere, and would be refused.
 */
export function contentsWithAcceptedSignatures(
  scan: ScannedObject,
  isRequired: () => boolean,
): readonly [key: Member['key'], text: string] | undefined {
  const { bytes } = scan
  const maySign = CALL_MARKS.some((mark) => bytes.includes(mark)) && isRequired()
  if (!maySign && !mayHoldSealedSignature(bytes)) return undefined
  const contents = topMember(scan, 'contents')
  if (!contents || scan.kindOf(contents.node) !== 'array') return undefined
  let isFirstCall = maySign
  const text = changedArray(scan, contents.node, (content): Fate => {
    if (!isModels(scan, content)) isFirstCall = maySign
    const parts = nodeOf(scan, content, 'parts')
    if (parts === undefined || scan.kindOf(parts) !== 'array') return 'stays'
    const changed = changedArray(scan, parts, (part) => {
      const isCall = nodeOf(scan, part, CALL) !== undefined
      const needsSignature = isCall && isFirstCall && isModels(scan, content)
      if (isCall) isFirstCall = false
      return fateOf(scan, part, needsSignature)
    })
    if (changed === undefined) return 'stays'
    return changed === '[]' ? 'goes' : { text: withMember(scan, content, parts, changed) }
  })
  return text === undefined ? undefined : [contents.key, text]
}

function isModels(scan: ScannedObject, content: Node): boolean {
  const role = nodeOf(scan, content, 'role')
  return role !== undefined && scan.parse(role) === 'model'
}

function fateOf(scan: ScannedObject, part: Node, needsSignature: boolean): Fate {
  const signature = nodeOf(scan, part, SIGNATURE)
  const value = signature === undefined ? '' : scan.parse(signature)
  const isSealed = typeof value === 'string' && isEnvelope(Buffer.from(value, 'base64').toString())
  if (!isSealed && (!needsSignature || value !== '')) return 'stays'
  const thought = nodeOf(scan, part, 'thought')
  if (isSealed && thought !== undefined && scan.parse(thought) === true) return 'goes'
  const inner = scanObject(Buffer.from(scan.textOf(part)))
  const remove = [SIGNATURE, snakeCase(SIGNATURE)]
  const replace = new Map(needsSignature ? [[SIGNATURE, JSON.stringify(UNSIGNED_CALL)]] : [])
  return { text: edit(inner.bytes, inner, { remove, replace }).toString() }
}
