import type { UpstreamSettings } from './upstream-settings.ts'
import { editRequest, type EditedRequest } from './edit-request.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/** A client's request with the model's name as one channel knows it. */
export interface MappedRequest extends EditedRequest {
  readonly upstreamModel: string
}

/** Replaces the requested `model` by the channel's name for it, or adds it if the request names none. */
export function withMappedModel(
  scan: ScannedObject,
  model: string,
  channel: UpstreamSettings,
  passThrough: boolean,
): MappedRequest {
  const upstreamModel = channel.model_mapping.get(model) ?? model
  const replace = new Map(
    scan.value('model') === upstreamModel ? [] : [['model', JSON.stringify(upstreamModel)]],
  )
  const isOpen = passThrough || channel.pass_through
  return { ...editRequest(scan, channel, isOpen, { remove: [], replace }), upstreamModel }
}
