import type { RestrictedField, UpstreamSettings } from '../../upstream-settings.ts'
import { type EditedRequest, editRequest } from '../../edit-request.ts'
import { isSignatureEnvelope, mayHoldSignatureEnvelope } from '../../signature-envelope.ts'
import { renderArray, type ElementChange, replaceMemberValue } from '../../json/json-edit.ts'
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

/** Request fields that are removed if the request switches thinking on; `docs/api.md: Messages`. */
const SAMPLING = ['temperature', 'top_p', 'top_k'] as const

/**
 * Changes a request for a channel of this protocol: maps the model's name, and removes request fields that
 * the channel does not allow, thoughts of other providers, and sampling fields if thinking is active. All
 * other bytes stay as the client wrote them, including cache marks and signatures. In pass-through mode,
 * fields that the channel does not allow and sampling fields are sent too. `passThrough` switches this mode
 * on for all channels; a channel can also have it on its own.
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
  const messages = messagesWithoutEnvelopes(scan)
  if (messages !== undefined) replace.set('messages', messages)
  const isOpen = passThrough || channel.pass_through
  if (!isOpen) {
    remove.push(...GATED.filter((field) => !channel.allow.has(field)))
    if (request.thinking) remove.push(...SAMPLING)
  }
  return { ...editRequest(scan, channel, isOpen, { remove, replace }), upstreamModel }
}

/** Beginning of the id of a search that another provider ran, as written in JSON. */
const SEARCH_BEGINNING = Buffer.from(`"${FOREIGN_SEARCH_ID_PREFIX}`)

/**
 * The JSON text of `messages` without thoughts, searches and citations of other providers, which upstreams of
 * this protocol refuse. A message that then has no content is removed. Undefined if nothing must be removed.
 */
function messagesWithoutEnvelopes(scan: ScannedObject): string | undefined {
  const messages = scan.span('messages')
  if (!messages || scan.kindOf(messages.node) !== 'array') return undefined
  if (!mayHoldSignatureEnvelope(scan) && !scan.hasStringFrom(SEARCH_BEGINNING)) return undefined
  return renderArray(scan, messages.node, (message): ElementChange => {
    const content = scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
    if (content === undefined || scan.kindOf(content) !== 'array') return 'stays'
    const text = renderArray(scan, content, (block) => fateOf(scan, block))
    if (text === undefined) return 'stays'
    return text === '[]' ? 'goes' : { text: replaceMemberValue(scan, message, content, text) }
  })
}

function fateOf(scan: ScannedObject, block: Node): ElementChange {
  if (scan.kindOf(block) !== 'object') return 'stays'
  if (isSignatureEnvelope(textOf(scan, block, 'signature'))) return 'goes'
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
