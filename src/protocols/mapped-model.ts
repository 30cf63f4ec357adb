import type { Channel } from '../domain/channel.ts'
import { edit } from './json/json-edit.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/** A client's request with the model's name as one channel knows it, and nothing else changed. */
export interface MappedRequest {
  /** Client's own Buffer if the name is the same. */
  readonly body: Buffer
  readonly upstreamModel: string
}

/** Maps the name of the requested `model` for a channel; adds it where the request names none. */
export function withMappedModel(scan: ScannedObject, model: string, channel: Channel): MappedRequest {
  const upstreamModel = channel.modelMapping.get(model) ?? model
  const replace = new Map(
    scan.value('model') === upstreamModel ? [] : [['model', JSON.stringify(upstreamModel)]],
  )
  return { body: edit(scan.bytes, scan, { remove: [], replace }), upstreamModel }
}
