import {
  DEFAULT_TIER,
  type RestrictedField,
  mustNameStandardTier,
  type UpstreamSettings,
} from '../../upstream-settings.ts'
import { type EditedRequest, editRequest } from '../../edit-request.ts'
import { mayHoldSignatureEnvelope } from '../../signature-envelope.ts'
import { renderArray, type ElementChange, replaceMemberValue } from '../../json/json-edit.ts'
import { asRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { isDetailOfGateway } from '../reasoning-details.ts'
import type { ChatRequest } from './request.ts'

/** A request changed for a channel. */
export interface AdaptedChatRequest extends EditedRequest {
  /** The model's name at the upstream. */
  readonly upstreamModel: string
  /** Whether the gateway itself requested usage, so that the chunk with usage must not reach the client. */
  readonly addedUsageOption: boolean
}

/**
 * Request fields that are removed unless the channel allows them; `docs/api.md: Chat completions`, filtered
 * fields.
 */
const FILTERED: readonly RestrictedField[] = ['service_tier', 'safety_identifier', 'inference_geo', 'speed']

/** Options for changing a request for a channel. */
export interface ChatAdaptionOptions {
  readonly passThrough: boolean
  /** Whether the endpoint has service tiers. Text completions have none. */
  readonly statesTier: boolean
}

/**
 * Changes a request for a channel of this protocol: maps the model's name, removes fields that must be
 * allowed, and requests usage in a stream if the client did not. In pass-through mode only the model's name,
 * `store` and encrypted reasoning of other providers are changed; `passThrough` is the gateway's option, and
 * the channel has its own.
 */
export function adaptChatRequest(
  scan: ScannedObject,
  request: ChatRequest,
  channel: UpstreamSettings,
  { passThrough, statesTier: mayState }: ChatAdaptionOptions,
): AdaptedChatRequest {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.model_mapping.get(request.model) ?? request.model
  if (upstreamModel !== scan.value('model')) replace.set('model', JSON.stringify(upstreamModel))
  if (channel.disable_store) remove.push('store')
  const messages = messagesWithoutEnvelopes(scan)
  if (messages !== undefined) replace.set('messages', messages)

  let addedUsageOption = false
  const isOpen = passThrough || channel.pass_through
  if (!isOpen) {
    remove.push(...FILTERED.filter((field) => !channel.allow.has(field)))
    if (mayState && mustNameStandardTier(channel)) replace.set('service_tier', DEFAULT_TIER)
    addedUsageOption = request.stream && !request.includeUsage
    const options = streamOptions(scan, channel, addedUsageOption)
    if (options === '{}') remove.push('stream_options')
    else if (options !== undefined) replace.set('stream_options', options)
  }
  return { ...editRequest(scan, channel, isOpen, { remove, replace }), upstreamModel, addedUsageOption }
}

/** Writes the changed `stream_options` as JSON text. Undefined if the options do not change. */
function streamOptions(
  scan: ScannedObject,
  channel: UpstreamSettings,
  addsUsageOption: boolean,
): string | undefined {
  const options = asRecord(scan.value('stream_options'))
  const filter = options?.['include_obfuscation'] !== undefined && !channel.allow.has('include_obfuscation')
  if (!filter && !addsUsageOption) return undefined
  const result = { ...options }
  if (filter) delete result['include_obfuscation']
  if (addsUsageOption) result['include_usage'] = true
  return JSON.stringify(result)
}

/**
 * The text of `messages` without the encrypted reasoning of other providers, which upstreams of this protocol
 * cannot read. Undefined if there is none.
 */
function messagesWithoutEnvelopes(scan: ScannedObject): string | undefined {
  if (!mayHoldSignatureEnvelope(scan)) return undefined
  const messages = scan.span('messages')
  if (!messages || scan.kindOf(messages.node) !== 'array') return undefined
  return renderArray(scan, messages.node, (message): ElementChange => {
    const details =
      scan.kindOf(message) === 'object' ? scan.memberOf(message, 'reasoning_details') : undefined
    if (details === undefined || scan.kindOf(details) !== 'array') return 'stays'
    const text = renderArray(scan, details, (detail) =>
      isDetailOfGateway(scan.parse(detail)) ? 'goes' : 'stays',
    )
    if (text === undefined) return 'stays'
    return {
      text:
        text === '[]'
          ? withoutMember(scan, message, details)
          : replaceMemberValue(scan, message, details, text),
    }
  })
}

/** Writes an object without one of its members. */
function withoutMember(scan: ScannedObject, object: Node, member: Node): string {
  const { bytes } = scan
  const before = bytes.toString('utf8', scan.startOf(object), scan.startOf(member))
  const after = bytes.toString('utf8', scan.endOf(member), scan.endOf(object))
  const named = before.trimEnd().slice(0, -':'.length).trimEnd()
  const earlier = named.slice(0, named.lastIndexOf('"', named.length - 2)).trimEnd()
  const rest = earlier.endsWith(',') ? earlier.slice(0, -1) : earlier
  return rest + (rest.trimEnd() === '{' ? after.replace(/^\s*,/, '') : after)
}
