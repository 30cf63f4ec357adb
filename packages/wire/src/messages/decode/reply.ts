import { errorInAnswer, errorOfEnd, FailedAnswer } from '../../answer-error.ts'
import { cacheVerdictMember } from '../../cache-diagnosis.ts'
import { WireError } from '../../wire-error.ts'
import { parseExact } from '../../json/exact-json.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Reply, ReplyPart } from '../../reply.ts'
import { isErrorMember } from '../../reply-facts.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { readBlock, ServerSearchReader, toolUsesIn } from '../blocks.ts'
import { readStop } from '../stop-reasons.ts'
import { readMessagesUsage } from '../usage.ts'

/**
 * Decodes a complete reply. The input of a tool call keeps the bytes that the upstream wrote. Throws
 * `upstream_error` if the bytes are not a reply.
 */
export function decodeReply(bytes: Buffer): Reply {
  const scan = scanned(bytes)
  const content = scan?.span('content')
  const isAnswer = scan && content && scan.kindOf(content.node) === 'array'
  const error =
    !isAnswer || isErrorMember(scan.value('error'))
      ? errorInAnswer(parseRecord(bytes.toString()), isAnswer === true)
      : errorOfEnd(scan.value('stop_reason'))
  const searches = new ServerSearchReader()
  const parts = isAnswer ? scan.elements(content.node).flatMap((block) => partsAt(scan, block, searches)) : []
  if (error) throw new FailedAnswer(error, scan && readMessagesUsage(scan.value('usage'), []), parts)
  if (!isAnswer)
    throw new WireError('upstream_error', 'The upstream sent no response that could be understood.')
  const tools = toolUsesIn(scan.value('content'))
  const stop = {
    stop_reason: scan.value('stop_reason'),
    stop_sequence: scan.value('stop_sequence'),
    stop_details: scan.value('stop_details'),
  }
  return {
    id: textAt(scan, 'id'),
    model: textAt(scan, 'model'),
    parts,
    stop: readStop(stop) ?? { reason: 'end' },
    usage: readMessagesUsage(scan.value('usage'), tools),
    ...cacheVerdictMember(scan.has('diagnostics') ? scan.value('diagnostics') : null),
    ...(tools.length > 0 && { tools }),
  }
}

/** Returns the input of a tool call as it was written in the block; empty if there is none. */
export function inputText(scan: ScannedObject, block: Node): string {
  const input = scan.memberOf(block, 'input')
  return input === undefined ? '' : scan.textOf(input)
}

function partsAt(scan: ScannedObject, node: Node, searches: ServerSearchReader): ReplyPart[] {
  const block = asRecord(parseExact(scan.textOf(node)))
  if (!block) return []
  const search = searches.note(block)
  return [readBlock(block, inputText(scan, node)), ...(search ? [search] : [])]
}

function scanned(bytes: Buffer): ScannedObject | undefined {
  try {
    return scanObject(bytes, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

function textAt(scan: ScannedObject, key: string): string {
  const value = scan.value(key)
  return typeof value === 'string' ? value : ''
}
