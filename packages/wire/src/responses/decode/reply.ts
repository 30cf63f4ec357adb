import { FailedAnswer } from '../../answer-error.ts'
import { cacheVerdictMember } from '../../cache-diagnosis.ts'
import { WireError } from '../../wire-error.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import {
  type Citation,
  type Logprobs,
  readUrlCitation,
  type Reply,
  type ReplyPart,
  type ReplyText,
} from '../../reply.ts'
import { errorOfResponse } from '../errors.ts'
import { readResponsesStop } from '../stop-reasons.ts'
import { statedServiceMember } from '../../service-tier.ts'
import { toolUsesInResponse, usageInResponse } from '../usage.ts'
import { openSignatureEnvelope } from '../../signature-envelope.ts'
import { isSearch, readSearch } from '../search-item.ts'
import { customArguments } from '../../openai-tools.ts'

/** Decodes a whole response. Throws `upstream_error` if it is not a response, or if the response failed. */
export function decodeReply(bytes: Buffer): Reply {
  const text = bytes.toString()
  const response = parseRecord(text)
  const output = response?.['output']
  const error = errorOfResponse(response)
  const textsIn = itemTextFinders(text, (scan) => elementsOfList(scan, scan.span('output')?.node))
  const items = listOf(output).map((item: unknown) => asRecord(item) ?? {})
  const parts = items.flatMap((item, index): ReplyPart[] => readItem(item, textsIn(item, index)))
  if (error) throw new FailedAnswer(error, response && usageInResponse(response), parts)
  if (!response || !Array.isArray(output))
    throw new WireError('upstream_error', 'The upstream sent no response that could be understood.')
  const calledTools = parts.some(({ kind }) => kind === 'tool-call')
  const tools = toolUsesInResponse(response)
  return {
    id: stringOrEmpty(response['id']),
    model: stringOrEmpty(response['model']),
    parts,
    stop: readResponsesStop(response, { calledTools }),
    usage: usageInResponse(response),
    ...statedServiceMember(response['service_tier']),
    ...cacheVerdictMember(response['prompt_cache_diagnostics']),
    ...(tools.length > 0 && { tools }),
  }
}

/**
 * Returns functions that return the JSON of an item's members as it was written. `text` is the whole
 * response; it is scanned only when a member is requested, which is rare. `find` finds the items in the
 * scanned JSON.
 */
export function itemTextFinders(
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
    // If the response exceeds the scanner's limits, the value is serialized again: integer-like keys then
    // change their order, and large integers lose digits.
    return scan && found !== undefined ? scan.textOf(found) : JSON.stringify(value)
  }
}

/** The elements of a list; empty if there is no list. */
export function elementsOfList(scan: ScannedObject, list: Node | undefined): readonly Node[] {
  return list === undefined ? [] : scan.elements(list)
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

type Item = Readonly<Record<string, unknown>>

/** Returns a member of an item as it was written; undefined if the item has no such member. */
export type MemberText = (member: string) => string | undefined

/**
 * Types of items with calls of built-in tools that the client runs. For each: the name of the tool, and the
 * member of the item that contains the input.
 */
const TYPED_CALLS: ReadonlyMap<unknown, readonly [name: string, member: string]> = new Map([
  ['local_shell_call', ['local_shell', 'action']],
  ['shell_call', ['shell', 'action']],
  ['apply_patch_call', ['apply_patch', 'operation']],
  ['tool_search_call', ['tool_search', 'arguments']],
])

/**
 * Reads an item of a complete response or of a stream as parts. Calls of tools that the provider ran itself,
 * and items that other protocols cannot express, become opaque parts. No type of item is refused.
 */
export function readItem(item: Item, textOf: MemberText): ReplyPart[] {
  switch (item['type']) {
    case 'message':
      return listOf(item['content']).map(readText)
    case 'reasoning':
      return [readReasoning(item)]
    case 'function_call':
      return [
        call(
          item,
          stringOrEmpty(item['name']),
          stringOrEmpty(item['arguments']) || objectText(item, 'arguments', textOf),
        ),
      ]
    case 'custom_tool_call':
      return [call(item, stringOrEmpty(item['name']), customArguments(stringOrEmpty(item['input'])))]
    default: {
      if (isSearch(item)) return [readSearch(item)]
      const [name, member] = TYPED_CALLS.get(item['type']) ?? []
      if (name === undefined || member === undefined || isServerRun(item))
        return [{ kind: 'opaque', protocol: 'responses', value: item }]
      return [call(item, name, textOf(member) ?? '')]
    }
  }
}

/** Whether the provider itself has run a tool call. The client must not run it. */
function isServerRun(item: Item): boolean {
  if (item['type'] === 'tool_search_call') return item['execution'] !== 'client'
  return stringOrEmpty(asRecord(item['environment'])?.['type']).startsWith('container')
}

function readText(part: Item): ReplyText {
  const citations = listOf(part['annotations']).flatMap((annotation) => readAnnotation(annotation) ?? [])
  const logprobs = readLogprobs(part['logprobs'])
  return {
    kind: 'text',
    text: partText(part),
    ...(citations.length > 0 && { citations }),
    ...(logprobs && { logprobs }),
    ...(part['type'] === 'refusal' && { refusal: true }),
  }
}

/** Reads an annotation as a citation; undefined if it cites a file, which other protocols cannot express. */
export function readAnnotation(annotation: Item | undefined): Citation | undefined {
  return annotation?.['type'] === 'url_citation' ? readUrlCitation(annotation) : undefined
}

/** Log probabilities of a text or a delta; undefined if there are none. */
export function readLogprobs(value: unknown): Logprobs | undefined {
  return Array.isArray(value) && value.length > 0 ? value : undefined
}

/** The text of a part of a message. */
function partText(part: Item): string {
  return stringOrEmpty(part['text']) || stringOrEmpty(part['refusal']) || stringOrEmpty(part['transcript'])
}

/** Reads the thoughts of an item: their summaries, or the complete text, which open-weight models provide. */
function readReasoning(item: Item): ReplyPart {
  const summary = listOf(item['summary'])
  const text =
    summary.length > 0 ? summary.map(partText).join('\n\n') : listOf(item['content']).map(partText).join('')
  const encrypted = stringOrEmpty(item['encrypted_content'])
  if (encrypted === '') return { kind: 'thinking', text }
  const enclosed = openSignatureEnvelope(encrypted, 'responses')
  return 'opaque' in enclosed ? enclosed.opaque : { kind: 'thinking', text, ...enclosed }
}

function call(item: Item, name: string, input: string): ReplyPart {
  return { kind: 'tool-call', id: stringOrEmpty(item['call_id']) || stringOrEmpty(item['id']), name, input }
}

/** Returns the arguments of a call as text. Some servers send them as a JSON object instead. */
function objectText(item: Item, member: string, textOf: MemberText): string {
  return asRecord(item[member]) ? (textOf(member) ?? '') : ''
}

function listOf(value: unknown): Item[] {
  return Array.isArray(value) ? value.map((part: unknown) => asRecord(part) ?? {}) : []
}

/** Returns the value if it is a string; otherwise ''. */
export function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
