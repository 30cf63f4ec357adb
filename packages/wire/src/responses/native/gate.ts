import { DEFAULT_TIER, type GatedField, statesTier, type UpstreamSettings } from '../../upstream-settings.ts'
import { editRequest, type EditedRequest } from '../../edit-request.ts'
import { asRecord } from '../../json/record.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import type { ResponsesRequest } from './request.ts'

/** A native request, adapted to a channel. */
export interface GatedResponses extends EditedRequest {
  /** The model's name at the upstream. */
  readonly upstreamModel: string
}

/** Fields that are removed unless the channel allows them. */
const FILTERED: readonly GatedField[] = ['service_tier', 'safety_identifier']
const NOTHING: ReadonlyMap<string, string> = new Map()

/**
 * Adapts a native request to a channel: maps the model's name, removes filtered fields, and disables storage
 * if the channel demands it (without the field `store` the response would be stored). All other bytes stay
 * unchanged. In pass-through mode (`passThrough` is the gateway's option; the channel has its own) only the
 * mapping and `disable_store` apply. `replace` contains further members as JSON texts, such as the upstream's
 * id of the response that is continued.
 */
export function gateResponsesRequest(
  scan: ScannedObject,
  request: ResponsesRequest,
  channel: UpstreamSettings,
  options: {
    readonly passThrough: boolean
    readonly replace?: ReadonlyMap<string, string>
    /** Whether the endpoint generates a response, for which the provider charges by service tier. */
    readonly statesTier?: boolean
  },
): GatedResponses {
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
    if (options.statesTier && statesTier(channel)) set('service_tier', DEFAULT_TIER)
    const streamOptions = asRecord(scan.value('stream_options'))
    if (streamOptions?.['include_obfuscation'] !== undefined && !channel.allow.has('include_obfuscation')) {
      const { include_obfuscation: _, ...others } = streamOptions
      if (Object.keys(others).length === 0) remove.push('stream_options')
      else set('stream_options', JSON.stringify(others))
    }
  }
  return { ...editRequest(scan, channel, isOpen, { remove, replace }), upstreamModel }
}
