import { isEnvelope, mayHoldEnvelope } from '../envelope.ts'
import { changedArray, type Fate, withMember } from '../json/changed-array.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { FOREIGN_SEARCH } from './server-searches.ts'

/** The id of a foreign search as a JSON string begins with it. */
const SEARCH_BEGINNING = Buffer.from(`"${FOREIGN_SEARCH}`)

/**
 * Text of `messages` without what other providers thought, searched for and cited, which upstreams of this
 * dialect refuse; undefined if there is none of it. A message that has nothing else goes, too.
 */
export function messagesWithoutEnvelopes(scan: ScannedObject): string | undefined {
  const messages = scan.span('messages')
  if (!messages || scan.kindOf(messages.node) !== 'array') return undefined
  if (!mayHoldEnvelope(scan) && !scan.hasStringFrom(SEARCH_BEGINNING)) return undefined
  return changedArray(scan, messages.node, (message): Fate => {
    const content = scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
    if (content === undefined || scan.kindOf(content) !== 'array') return 'stays'
    const text = changedArray(scan, content, (block) => fateOf(scan, block))
    if (text === undefined) return 'stays'
    return text === '[]' ? 'goes' : { text: withMember(scan, message, content, text) }
  })
}

function fateOf(scan: ScannedObject, block: Node): Fate {
  if (scan.kindOf(block) !== 'object') return 'stays'
  if (isEnvelope(textOf(scan, block, 'signature'))) return 'goes'
  if (['id', 'tool_use_id'].some((key) => textOf(scan, block, key).startsWith(FOREIGN_SEARCH))) return 'goes'
  const citations = scan.memberOf(block, 'citations')
  if (citations === undefined || scan.kindOf(citations) !== 'array') return 'stays'
  const own = changedArray(scan, citations, (citation) => (isForeign(scan, citation) ? 'goes' : 'stays'))
  if (own === undefined) return 'stays'
  return { text: withMember(scan, block, citations, own === '[]' ? 'null' : own) }
}

/** Whether a citation is of a page that another provider found. */
function isForeign(scan: ScannedObject, citation: Node): boolean {
  return scan.kindOf(citation) === 'object' && isEnvelope(textOf(scan, citation, 'encrypted_index'))
}

/** Returns the text of a member; '' if there is none. */
function textOf(scan: ScannedObject, holder: Node, key: string): string {
  const member = scan.memberOf(holder, key)
  return member !== undefined && scan.kindOf(member) === 'string' ? String(scan.parse(member)) : ''
}
