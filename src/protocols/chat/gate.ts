import type { GatedField } from '../../domain/allowed-field.ts'
import type { Channel } from '../../domain/records/channel.ts'
import { editRequest, type EditedRequest } from '../edited-request.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { asRecord } from '../json/record.ts'
import { messagesWithoutEnvelopes } from './native-envelopes.ts'
import type { ChatRequest } from './request.ts'

/** Request for a channel. */
export interface GatedRequest extends EditedRequest {
  /** Model's name at the upstream. */
  readonly upstreamModel: string
  /** Whether the gateway asked for usage on its own account, so that its frame is not for the client. */
  readonly askedForUsage: boolean
}

/**
 * Fields that are removed unless the channel allows them; `docs/api.md: Chat completions`, filtered fields.
 */
const FILTERED: readonly GatedField[] = ['service_tier', 'safety_identifier', 'inference_geo', 'speed']

/**
 * Adapts a native request to a channel: maps the model's name, removes filtered fields, and asks for usage in
 * a stream if the client did not. In pass-through mode (`passThrough` is the gateway's option, the channel
 * has its own flag) only mapping and `disable_store` stay.
 */
export function gateChatRequest(
  scan: ScannedObject,
  request: ChatRequest,
  channel: Channel,
  passThrough: boolean,
): GatedRequest {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.model_mapping.get(request.model) ?? request.model
  if (upstreamModel !== scan.value('model')) replace.set('model', JSON.stringify(upstreamModel))
  if (channel.disable_store) remove.push('store')
  const messages = messagesWithoutEnvelopes(scan)
  if (messages !== undefined) replace.set('messages', messages)

  let askedForUsage = false
  const isOpen = passThrough || channel.pass_through
  if (!isOpen) {
    remove.push(...FILTERED.filter((field) => !channel.allow.has(field)))
    askedForUsage = request.stream && !request.includeUsage
    const options = streamOptions(scan, channel, askedForUsage)
    if (options === '{}') remove.push('stream_options')
    else if (options !== undefined) replace.set('stream_options', options)
  }
  return { ...editRequest(scan, channel, isOpen, { remove, replace }), upstreamModel, askedForUsage }
}

/** Renders the options as JSON text; undefined if they stay as they are. */
function streamOptions(scan: ScannedObject, channel: Channel, askForUsage: boolean): string | undefined {
  const options = asRecord(scan.value('stream_options'))
  const filter = options?.['include_obfuscation'] !== undefined && !channel.allow.has('include_obfuscation')
  if (!filter && !askForUsage) return undefined
  const result = { ...options }
  if (filter) delete result['include_obfuscation']
  if (askForUsage) result['include_usage'] = true
  return JSON.stringify(result)
}
