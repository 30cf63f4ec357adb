import { WireError } from '../../wire-error.ts'
import { parseExact } from '../../json/exact-json.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { asRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { Reply, ReplyPart } from '../../reply.ts'
import { readBlock } from '../reply-block.ts'
import { readStop } from '../stop-reasons.ts'
import { readConverseUsage } from '../usage.ts'

/**
 * Decodes a whole reply, which contains neither an id nor the model. A call's input is the text that the
 * upstream wrote. Throws `upstream_error` if it is not a reply.
 */
export function decodeReply(bytes: Buffer): Reply {
  const scan = scanned(bytes)
  const output = scan?.span('output')
  const message = scan && memberAt(scan, output?.node, 'message')
  const content = scan && memberAt(scan, message, 'content')
  if (!scan || content === undefined || scan.kindOf(content) !== 'array')
    throw new WireError('upstream_error', 'The upstream sent no response that could be understood.')
  return {
    id: '',
    model: '',
    parts: scan.elements(content).flatMap((block) => partsAt(scan, block)),
    stop: readStop(scan.value('stopReason')) ?? { reason: 'end' },
    usage: readConverseUsage(scan.value('usage')),
  }
}

function partsAt(scan: ScannedObject, node: Node): ReplyPart[] {
  const block = asRecord(parseExact(scan.textOf(node)))
  if (!block) return []
  const input = memberAt(scan, memberAt(scan, node, 'toolUse'), 'input')
  return readBlock(block, input === undefined ? '' : scan.textOf(input))
}

function memberAt(scan: ScannedObject, holder: Node | undefined, key: string): Node | undefined {
  return holder === undefined || scan.kindOf(holder) !== 'object' ? undefined : scan.memberOf(holder, key)
}

function scanned(bytes: Buffer): ScannedObject | undefined {
  try {
    return scanObject(bytes, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}
