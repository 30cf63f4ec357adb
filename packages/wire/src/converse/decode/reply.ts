import { errorInAnswer, errorOfEnd, FailedAnswer } from '../../answer-error.ts'
import { WireError } from '../../wire-error.ts'
import { endReasonOf } from '../../end-reasons.ts'
import { parseExact } from '../../json/exact-json.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { statedTier, withStatedService } from '../../service-tier.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { Reply, ReplyPart, Stop } from '../../reply.ts'
import type { Fields } from '../../field.ts'
import { NO_USAGE } from '../../usage.ts'
import {
  plausibleCountAt,
  largestCount,
  promptUsage,
  type ReportedUsage,
  plausibleCount,
} from '../../reported-usage.ts'

/**
 * Decodes a complete reply. It contains neither an id nor the model. The input of a tool call keeps the bytes
 * that the upstream wrote. Throws `upstream_error` if the bytes are not a reply.
 */
export function decodeReply(bytes: Buffer): Reply {
  const scan = scanned(bytes)
  const output = scan?.span('output')
  const message = scan && memberAt(scan, output?.node, 'message')
  const content = scan && memberAt(scan, message, 'content')
  const isAnswer = scan && content !== undefined && scan.kindOf(content) === 'array'
  const error = isAnswer
    ? errorOfEnd(scan.value('stopReason'))
    : errorInAnswer(parseRecord(bytes.toString()), false)
  const parts = isAnswer ? scan.elements(content).flatMap((block) => partsAt(scan, block)) : []
  if (error) throw new FailedAnswer(error, scan && readConverseUsage(scan.value('usage')), parts)
  if (!isAnswer)
    throw new WireError('upstream_error', 'The upstream sent no response that could be understood.')
  return {
    id: '',
    model: '',
    parts,
    stop: readStop(scan.value('stopReason')) ?? { reason: 'end' },
    usage: readConverseUsage(scan.value('usage'), scan.value('serviceTier')),
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

/** Type of a call to a tool that the provider runs itself. The client must not run it. */
const SERVER_CALL = 'server_tool_use'

/**
 * Decodes a complete block of a reply. `input` is the JSON text of a tool call's input. Blocks that other
 * protocols cannot express become opaque parts. No type of block is refused.
 */
function readBlock(block: Fields, input: string): ReplyPart[] {
  if (typeof block['text'] === 'string') return textPart(block['text'])
  const call = asRecord(block['toolUse'])
  if (call && !isServerCall(call))
    return [{ kind: 'tool-call', id: textOf(call['toolUseId']), name: textOf(call['name']), input }]
  const reasoning = asRecord(asRecord(block['reasoningContent'])?.['reasoningText'])
  if (reasoning) return thinkingParts(textOf(reasoning['text']), textOf(reasoning['signature']))
  const cited = asRecord(block['citationsContent'])?.['content']
  // Only the cited text is kept, because other protocols cannot express these sources.
  if (Array.isArray(cited))
    return textPart(cited.map((part: unknown) => textOf(asRecord(part)?.['text'])).join(''))
  return Object.keys(block).length > 0 ? [{ kind: 'opaque', protocol: 'converse', value: block }] : []
}

/** Whether the provider itself runs the called tool. */
export function isServerCall(call: Fields): boolean {
  return call['type'] === SERVER_CALL
}

/**
 * Returns a thought with its signature, if it has one; an empty list if it has neither text nor signature.
 */
function thinkingParts(text: string, signature: string): ReplyPart[] {
  if (signature !== '') return [{ kind: 'thinking', text, proof: { protocol: 'converse', value: signature } }]
  return text === '' ? [] : [{ kind: 'thinking', text }]
}

function textPart(text: string): ReplyPart[] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Reads a stop reason; undefined if there is none. */
export function readStop(reason: unknown): Stop | undefined {
  if (typeof reason !== 'string' || reason === '') return undefined
  const end = endReasonOf(reason)
  return { reason: end && 'stop' in end ? end.stop : 'end', ...(!end && { isUnknown: true }) }
}

/**
 * Reads the token counts of a reply. Tokens read from and written to a cache are not part of the input;
 * thoughts are part of the output. Some servers include cached tokens in the input; the total shows whether
 * they do. Returns undefined without an input, and only the prompt without an output. Tokens written to a
 * cache without a lifetime count as written for five minutes.
 */
export function readConverseUsage(value: unknown, tier?: unknown): ReportedUsage | undefined {
  const usage = asRecord(value)
  const stated = plausibleCount(usage?.['inputTokens'])
  if (!usage || stated === undefined) return undefined
  const output = plausibleCountAt(usage, 'outputTokens')
  const cacheRead = largestCount(usage, 'cacheReadInputTokens', 'cacheReadInputTokenCount')
  const written = largestCount(usage, 'cacheWriteInputTokens', 'cacheWriteInputTokenCount')
  const cached = cacheRead + written
  const isInside = cached > 0 && cached <= stated && plausibleCount(usage['totalTokens']) === stated + output
  const cacheWrite1h = Math.min(writtenForAnHour(usage['cacheDetails']), written)
  const counts: ReportedUsage = {
    ...NO_USAGE,
    input: isInside ? stated - cached : stated,
    cacheRead,
    cacheWrite5m: written - cacheWrite1h,
    cacheWrite1h,
    output,
  }
  const served = withStatedService(counts, statedTier(asRecord(tier)?.['type']))
  return plausibleCount(usage['outputTokens']) === undefined ? promptUsage(served) : served
}

function writtenForAnHour(details: unknown): number {
  if (!Array.isArray(details)) return 0
  return details
    .map((detail: unknown) => asRecord(detail) ?? {})
    .filter(({ ttl }) => ttl === '1h')
    .reduce((sum, detail) => sum + plausibleCountAt(detail, 'inputTokens'), 0)
}
