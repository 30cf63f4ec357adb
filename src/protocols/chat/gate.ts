import type { Channel, GatedField } from '../../domain/channel.ts'
import { edit } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { asRecord } from '../json/record.ts'
import type { ChatRequest } from './request.ts'

/** A request as it goes to a channel. */
export interface GatedRequest {
  /** The caller's own Buffer where nothing had to change. */
  readonly body: Buffer
  /** The model's name as the upstream knows it. */
  readonly upstreamModel: string
  /** The gateway asked for usage on its own account: the frame that brings it is not the caller's. */
  readonly askedForUsage: boolean
}

/**
 * Removed before forwarding unless the channel allows them; `docs/api.md: Chat completions`, filtered fields.
 */
const FILTERED: readonly GatedField[] = ['service_tier', 'safety_identifier', 'inference_geo', 'speed']

/**
 * The request for a channel of the caller's protocol: the model's mapped name, filtered fields removed, usage
 * asked for where the answer is streamed and the caller did not ask. In pass-through mode (`passThrough` is
 * the gateway's option, the channel has its own flag) the filters and the asking are left out; mapping and
 * `disable_store` stay.
 */
export function gateChatRequest(
  scan: ScannedObject,
  request: ChatRequest,
  channel: Channel,
  passThrough: boolean,
): GatedRequest {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.modelMapping.get(request.model) ?? request.model
  if (upstreamModel !== request.model) replace.set('model', JSON.stringify(upstreamModel))
  if (channel.disableStore) remove.push('store')

  let askedForUsage = false
  if (!passThrough && !channel.passThrough) {
    remove.push(...FILTERED.filter((field) => !channel.allow.has(field)))
    askedForUsage = request.stream && !request.includeUsage
    const options = streamOptions(scan, channel, askedForUsage)
    if (options === '{}') remove.push('stream_options')
    else if (options !== undefined) replace.set('stream_options', options)
  }
  return { body: edit(scan.bytes, scan, { remove, replace }), upstreamModel, askedForUsage }
}

/** The options as JSON text; undefined where they stay as they are. */
function streamOptions(scan: ScannedObject, channel: Channel, askForUsage: boolean): string | undefined {
  const options = asRecord(scan.value('stream_options'))
  const filter = options?.['include_obfuscation'] !== undefined && !channel.allow.has('include_obfuscation')
  if (!filter && !askForUsage) return undefined
  const result = { ...options }
  if (filter) delete result['include_obfuscation']
  if (askForUsage) result['include_usage'] = true
  return JSON.stringify(result)
}
