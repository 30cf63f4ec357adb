import { WireError } from '../../wire-error.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { Reply, ReplyPart } from '../../reply.ts'
import { isError } from '../../reply-facts.ts'
import { type MemberText, readItem, textOr } from '../read-item.ts'
import { stopOf } from '../stop-reasons.ts'
import { toolsOf, usageOf } from '../usage.ts'

/** Decodes a whole response. Throws `upstream_error` if it is not a response, or if the response failed. */
export function decodeReply(bytes: Buffer): Reply {
  const text = bytes.toString()
  const response = parseRecord(text)
  const output = response?.['output']
  if (!response || !Array.isArray(output) || isError(response['error']) || response['status'] === 'failed')
    throw new WireError('upstream_error', 'The upstream sent no response that could be understood.')
  const textsIn = itemTexts(text, (scan) => elementsOf(scan, scan.span('output')?.node))
  const items = output.map((item: unknown) => asRecord(item) ?? {})
  const parts = items.flatMap((item, index): ReplyPart[] => readItem(item, textsIn(item, index)))
  const calledTools = parts.some(({ kind }) => kind === 'tool-call')
  const tools = toolsOf(response)
  return {
    id: textOr(response['id']),
    model: textOr(response['model']),
    parts,
    stop: stopOf(response, { calledTools }),
    usage: usageOf(response),
    ...(tools.length > 0 && { tools }),
  }
}

/**
 * Finds the texts of members of items as they were written. The search runs only when a member is requested,
 * which is rare. `find` returns the array of items.
 */
export function itemTexts(
  text: string,
  find: (scan: ScannedObject) => readonly Node[],
): (item: Readonly<Record<string, unknown>>, index: number) => MemberText {
  let scan: ScannedObject | undefined | null
  let nodes: readonly Node[] = []
  return (item, index) => (member) => {
    const value = item[member]
    if (value === undefined || value === null) return undefined
    if (scan === undefined) {
      scan = scanned(text) ?? null
      if (scan) nodes = find(scan)
    }
    const node = nodes[index]
    const found = scan && node !== undefined ? scan.memberOf(node, member) : undefined
    // Responses beyond the scanner's limits lose the order of integer-like keys, and digits.
    return scan && found !== undefined ? scan.textOf(found) : JSON.stringify(value)
  }
}

/** The elements of a list; none if the list is missing. */
export function elementsOf(scan: ScannedObject, list: Node | undefined): readonly Node[] {
  return list === undefined ? [] : scan.elements(list)
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}
