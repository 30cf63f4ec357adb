import {
  DEFAULT_TIER,
  type RestrictedField,
  mustNameStandardTier,
  type UpstreamSettings,
} from '../../upstream-settings.ts'
import { editRequest, type EditedRequest } from '../../edit-request.ts'
import { asRecord } from '../../json/record.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import type { ResponsesRequest } from './request.ts'

/** A responses request as it is sent to a channel of this protocol. */
export interface AdaptedResponsesRequest extends EditedRequest {
  /** The model's name at the upstream. */
  readonly upstreamModel: string
}

/** Request fields that are removed unless the channel allows them. */
const FILTERED: readonly RestrictedField[] = ['service_tier', 'safety_identifier']
const NOTHING: ReadonlyMap<string, string> = new Map()

/**
 * Changes a request for a channel of this protocol: maps the model's name, removes fields that the channel
 * does not allow, and sets `store` to false if the channel demands it (the provider would otherwise store the
 * response). All other bytes stay as the client wrote them. In pass-through mode only the model's name and
 * `store` are changed. `passThrough` switches this mode on for all channels; a channel can also have it on
 * its own. `replace` contains other members to set, as JSON texts, such as the upstream's id of the previous
 * response.
 */
export function adaptResponsesRequest(
  scan: ScannedObject,
  request: ResponsesRequest,
  channel: UpstreamSettings,
  options: {
    readonly passThrough: boolean
    readonly replace?: ReadonlyMap<string, string>
    /** Whether the endpoint generates a response, for which the provider charges by service tier. */
    readonly statesTier?: boolean
  },
): AdaptedResponsesRequest {
  const remove: string[] = []
  let replace = options.replace ?? NOTHING
  const set = (member: string, text: string): void => {
    replace = new Map(replace).set(member, text)
  }
  const upstreamModel = channel.model_mapping.get(request.model) ?? request.model
  if (upstreamModel !== scan.value('model')) set('model', JSON.stringify(upstreamModel))
  if (channel.disable_store && request.store !== false) set('store', 'false')
  const isOpen = options.passThrough || channel.pass_through
  if (!isOpen) {
    remove.push(...FILTERED.filter((field) => !channel.allow.has(field)))
    if (options.statesTier && mustNameStandardTier(channel)) set('service_tier', DEFAULT_TIER)
    const streamOptions = asRecord(scan.value('stream_options'))
    if (streamOptions?.['include_obfuscation'] !== undefined && !channel.allow.has('include_obfuscation')) {
      const { include_obfuscation: _, ...others } = streamOptions
      if (Object.keys(others).length === 0) remove.push('stream_options')
      else set('stream_options', JSON.stringify(others))
    }
  }
  return { ...editRequest(scan, channel, isOpen, { remove, replace }), upstreamModel }
}
