import type { RestrictedField, UpstreamSettings } from '../../upstream-settings.ts'
import { AWS_HOST } from '../../aws-domains.ts'
import { type EditedRequest, editRequest } from '../../edit-request.ts'
import {
  isSignatureEnvelope,
  mayHoldSignatureEnvelope,
  UNSIGNED_THOUGHT_ENVELOPE,
} from '../../signature-envelope.ts'
import { renderArray, type ElementChange, replaceMemberValue } from '../../json/json-edit.ts'
import { asRecord } from '../../json/record.ts'
import { isClaude } from '../../model-capabilities.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { MessagesRequest } from './request.ts'
import { FOREIGN_SEARCH_ID_PREFIX } from '../blocks.ts'

/** A messages request as it is sent to a channel of this protocol. */
export interface AdaptedMessagesRequest extends EditedRequest {
  /** The model's name at the upstream. */
  readonly upstreamModel: string
}

/**
 * Request fields that are removed unless the channel allows them; `docs/api.md: Messages`, channel-gated
 * fields.
 */
const GATED: readonly RestrictedField[] = ['inference_geo', 'speed', 'service_tier']

/**
 * Request fields that are removed if the request switches thinking on, with their defaults, which are not reported;
 * `docs/api.md: Messages`.
 */
const SAMPLING = new Map([
  ['temperature', 1],
  ['top_p', 1],
  ['top_k', undefined],
])

/**
 * Changes a request for a channel of this protocol: maps the model's name, and removes request fields that
 * the channel does not allow, thoughts of other providers, and sampling fields if thinking is active. Thinking
 * with a budget is removed if Claude would require a thought that was removed. All other bytes stay as the client
 * wrote them, including cache marks and signatures. In pass-through mode, fields that the channel does not allow
 * and sampling fields are sent too. `passThrough` switches this mode on for all channels; a channel can also have it
 * itself.
 */
export function adaptMessagesRequest(
  scan: ScannedObject,
  request: MessagesRequest,
  channel: UpstreamSettings,
  passThrough: boolean,
): AdaptedMessagesRequest {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.model_mapping.get(request.model) ?? request.model
  if (upstreamModel !== scan.value('model')) replace.set('model', JSON.stringify(upstreamModel))
  const messages = messagesWithoutForeignParts(scan, channel, upstreamModel)
  if (messages !== undefined) replace.set('messages', messages)
  const refused =
    messages === undefined || !isForClaude(channel, upstreamModel) ? [] : refusedFields(scan, messages)
  const named = [...refused]
  const isOpen = passThrough || channel.pass_through
  if (!isOpen) {
    remove.push(...GATED.filter((field) => !channel.allow.has(field)))
    if (request.thinking) {
      remove.push(...SAMPLING.keys())
      for (const [field, usual] of SAMPLING) if ((scan.value(field) ?? usual) !== usual) named.push(field)
    }
  }
  remove.push(...refused)
  const { body, dropped } = editRequest(scan, channel, isOpen, { remove, replace })
  return { body, dropped: named.length > 0 ? [...dropped, ...named] : dropped, upstreamModel }
}

/**
 * Fields that Claude refuses with these messages, a JSON text: thinking with a budget requires a thought
 * before the last tool calls, and edits of the context that clear thoughts require thinking.
 */
function refusedFields(scan: ScannedObject, messages: string): string[] {
  if (asRecord(scan.value('thinking'))?.['type'] !== 'enabled' || !lacksThoughts(messages)) return []
  return ['thinking', 'context_management'].filter((field) => scan.members.has(field))
}

/** Whether these messages, as JSON text, end with results of tool calls that have no thought before them. */
function lacksThoughts(messages: string): boolean {
  const turns = JSON.parse(messages) as { readonly role: unknown; readonly content: unknown }[]
  const typesOf = (turn: (typeof turns)[number] | undefined): unknown[] =>
    Array.isArray(turn?.content) ? turn.content.map((block) => asRecord(block)?.['type']) : []
  const last = typesOf(turns.findLast(({ role }) => role === 'assistant'))
  if (!last.includes('tool_use') || !typesOf(turns.at(-1)).includes('tool_result')) return false
  return last[0] !== 'thinking' && last[0] !== 'redacted_thinking'
}

/** Beginning of the id of a search that another provider ran, as written in JSON. */
const SEARCH_BEGINNING = Buffer.from(`"${FOREIGN_SEARCH_ID_PREFIX}`)

const EMPTY = Buffer.from('""')
/**
 * Hosts where only Claude speaks this protocol. It refuses thoughts without a signature, which other models write
 * and accept.
 */
const CLAUDE_HOST =
  /(?:^|\.)anthropic\.com$|\.(?:services\.ai|openai|cognitiveservices)\.azure\.com$|aiplatform[\w.-]{0,63}\.googleapis\.com$/
const BEDROCK = /(?:^|\.)bedrock[\w-]*\./

function isAtClaudeHost({ base_url }: UpstreamSettings): boolean {
  const host = URL.parse(base_url)?.hostname ?? ''
  return CLAUDE_HOST.test(host) || (BEDROCK.test(host) && AWS_HOST.test(host))
}

/** Whether Claude answers, which other hosts may offer too. */
function isForClaude(channel: UpstreamSettings, upstreamModel: string): boolean {
  return isClaude(upstreamModel) || isAtClaudeHost(channel)
}

/**
 * The JSON text of `messages` without thoughts, searches and citations of other providers, which upstreams of
 * this protocol refuse. Models other than Claude get thoughts that no model signed. A message that then has no
 * content is removed. Undefined if nothing must change.
 */
function messagesWithoutForeignParts(
  scan: ScannedObject,
  channel: UpstreamSettings,
  upstreamModel: string,
): string | undefined {
  const messages = scan.span('messages')
  if (!messages || scan.kindOf(messages.node) !== 'array') return undefined
  const isStrict = scan.hasStringFrom(EMPTY) && isAtClaudeHost(channel)
  const hasEnvelopes = mayHoldSignatureEnvelope(scan)
  if (!isStrict && !hasEnvelopes && !scan.hasStringFrom(SEARCH_BEGINNING)) return undefined
  const takesUnsigned = hasEnvelopes && !isForClaude(channel, upstreamModel)
  return renderArray(scan, messages.node, (message): ElementChange => {
    const content = scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
    if (content === undefined || scan.kindOf(content) !== 'array') return 'stays'
    const text = renderArray(scan, content, (block) => fateOf(scan, block, isStrict, takesUnsigned))
    if (text === undefined) return 'stays'
    return text === '[]' ? 'goes' : { text: replaceMemberValue(scan, message, content, text) }
  })
}

function fateOf(scan: ScannedObject, block: Node, isStrict: boolean, takesUnsigned: boolean): ElementChange {
  if (scan.kindOf(block) !== 'object') return 'stays'
  const signature = textOf(scan, block, 'signature')
  if (takesUnsigned && signature === UNSIGNED_THOUGHT_ENVELOPE)
    return { text: replaceMemberValue(scan, block, scan.memberOf(block, 'signature') as Node, '""') }
  if (isSignatureEnvelope(signature)) return 'goes'
  if (isStrict && signature === '' && textOf(scan, block, 'type') === 'thinking') return 'goes'
  if (['id', 'tool_use_id'].some((key) => textOf(scan, block, key).startsWith(FOREIGN_SEARCH_ID_PREFIX)))
    return 'goes'
  const citations = scan.memberOf(block, 'citations')
  if (citations === undefined || scan.kindOf(citations) !== 'array') return 'stays'
  const own = renderArray(scan, citations, (citation) => (isForeign(scan, citation) ? 'goes' : 'stays'))
  if (own === undefined) return 'stays'
  return { text: replaceMemberValue(scan, block, citations, own === '[]' ? 'null' : own) }
}

/** Whether a citation refers to a page that another provider found. */
function isForeign(scan: ScannedObject, citation: Node): boolean {
  return scan.kindOf(citation) === 'object' && isSignatureEnvelope(textOf(scan, citation, 'encrypted_index'))
}

/** Returns the text of a member; '' if there is none. */
function textOf(scan: ScannedObject, holder: Node, key: string): string {
  const member = scan.memberOf(holder, key)
  return member !== undefined && scan.kindOf(member) === 'string' ? String(scan.parse(member)) : ''
}
