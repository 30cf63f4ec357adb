import type { GatedField } from '../../domain/allowed-field.ts'
import type { Channel } from '../../domain/records/channel.ts'
import { editRequest, type EditedRequest } from '../edited-request.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { messagesWithoutEnvelopes } from './native-envelopes.ts'
import type { MessagesRequest } from './request.ts'

/** Request for a channel. */
export interface GatedMessages extends EditedRequest {
  /** Model's name at the upstream. */
  readonly upstreamModel: string
}

/** Fields that are removed unless the channel allows them; `docs/api.md: Messages`, channel-gated fields. */
const GATED: readonly GatedField[] = ['inference_geo', 'speed', 'service_tier']

/** Fields that are ignored while thinking is active; `docs/api.md: Messages`. */
const SAMPLING = ['temperature', 'top_p', 'top_k'] as const

/**
 * Adapts a native request to a channel: maps the model's name, removes gated fields, thoughts of other
 * providers, and sampling fields if the model thinks. Every other byte stays, with cache marks and
 * signatures. In pass-through mode (`passThrough` is the gateway's option, the channel has its own flag) the
 * fields stay, too.
 */
export function gateMessagesRequest(
  scan: ScannedObject,
  request: MessagesRequest,
  channel: Channel,
  passThrough: boolean,
): GatedMessages {
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
