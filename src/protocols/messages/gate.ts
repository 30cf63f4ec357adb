import type { Channel, GatedField } from '../../domain/channel.ts'
import { edit } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import type { MessagesRequest } from './request.ts'

/** A request as it goes to a channel. */
export interface GatedMessages {
  /** The caller's own Buffer where nothing had to change. */
  readonly body: Buffer
  /** The model's name as the upstream knows it. */
  readonly upstreamModel: string
}

/**
 * Removed before forwarding unless the channel allows them; `docs/api.md: Messages`, channel-gated fields.
 */
const GATED: readonly GatedField[] = ['inference_geo', 'speed', 'service_tier']

/** Ignored while thinking is active; `docs/api.md: Messages`. */
const SAMPLING = ['temperature', 'top_p', 'top_k'] as const

/**
 * The request for a channel of the caller's protocol: the model's mapped name, gated fields removed, sampling
 * fields removed where the model thinks. Every other byte is the caller's, cache marks and signatures among
 * them. In pass-through mode (`passThrough` is the gateway's option, the channel has its own flag) only the
 * name is mapped.
 */
export function gateMessagesRequest(
  scan: ScannedObject,
  request: MessagesRequest,
  channel: Channel,
  passThrough: boolean,
): GatedMessages {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.modelMapping.get(request.model) ?? request.model
  if (upstreamModel !== request.model) replace.set('model', JSON.stringify(upstreamModel))
  if (!passThrough && !channel.passThrough) {
    remove.push(...GATED.filter((field) => !channel.allow.has(field)))
    if (request.thinking) remove.push(...SAMPLING)
  }
  return { body: edit(scan.bytes, scan, { remove, replace }), upstreamModel }
}
