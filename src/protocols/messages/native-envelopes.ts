import { isEnvelope, mayHoldEnvelope } from '../envelope.ts'
import { changedArray, type Fate, withMember } from '../json/changed-array.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'

/**
 * Text of `messages` without thoughts of other providers, whose envelopes upstreams of this dialect refuse;
 * undefined if there are none. A message that has nothing else goes, too.
 */
export function messagesWithoutEnvelopes(scan: ScannedObject): string | undefined {
  const messages = scan.span('messages')
  if (!messages || scan.kindOf(messages.node) !== 'array') return undefined
  if (!mayHoldEnvelope(scan.bytes)) return undefined
  return changedArray(scan, messages.node, (message): Fate => {
    const content = scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
    if (content === undefined || scan.kindOf(content) !== 'array') return 'stays'
    const text = changedArray(scan, content, (block) => (isForeign(scan, block) ? 'goes' : 'stays'))
    if (text === undefined) return 'stays'
    return text === '[]' ? 'goes' : { text: withMember(scan, message, content, text) }
  })
}

function isForeign(scan: ScannedObject, block: Node): boolean {
  if (scan.kindOf(block) !== 'object') return false
  const signature = scan.memberOf(block, 'signature')
  if (signature === undefined || scan.kindOf(signature) !== 'string') return false
  return isEnvelope(String(scan.parse(signature)))
}
