import { mayHoldEnvelope } from '../envelope.ts'
import { changedArray, type Fate, withMember } from '../json/changed-array.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { isOwnDetail } from './reasoning-details.ts'

/**
 * Text of `messages` without the encrypted reasoning of other providers, which upstreams of this dialect do
 * not know; undefined if there is none of it.
 */
export function messagesWithoutEnvelopes(scan: ScannedObject): string | undefined {
  if (!mayHoldEnvelope(scan)) return undefined
  const messages = scan.span('messages')
  if (!messages || scan.kindOf(messages.node) !== 'array') return undefined
  return changedArray(scan, messages.node, (message): Fate => {
    const details =
      scan.kindOf(message) === 'object' ? scan.memberOf(message, 'reasoning_details') : undefined
    if (details === undefined || scan.kindOf(details) !== 'array') return 'stays'
    const text = changedArray(scan, details, (detail) => (isOwnDetail(scan.parse(detail)) ? 'goes' : 'stays'))
    if (text === undefined) return 'stays'
    return {
      text: text === '[]' ? withoutMember(scan, message, details) : withMember(scan, message, details, text),
    }
  })
}

/** Text of an object without a member. */
function withoutMember(scan: ScannedObject, object: Node, member: Node): string {
  const { bytes } = scan
  const before = bytes.toString('utf8', scan.startOf(object), scan.startOf(member))
  const after = bytes.toString('utf8', scan.endOf(member), scan.endOf(object))
  const named = before.trimEnd().slice(0, -':'.length).trimEnd()
  const earlier = named.slice(0, named.lastIndexOf('"', named.length - 2)).trimEnd()
  const rest = earlier.endsWith(',') ? earlier.slice(0, -1) : earlier
  return rest + (rest.trimEnd() === '{' ? after.replace(/^\s*,/, '') : after)
}
