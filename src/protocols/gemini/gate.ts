import type { Channel } from '../../domain/channel.ts'
import { edit } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { contentsWithoutEnvelopes } from './native-envelopes.ts'
import { snakeCase, topValue } from './spelling.ts'

/** Fields that are removed unless the channel allows `service_tier`. */
const TIER = ['serviceTier', snakeCase('serviceTier')] as const

/**
 * Adapts a native request to a channel: removes the tier and what other providers signed, and has nothing
 * stored where the channel disables that. All other bytes are the client's; the model's name is in the path.
 * In pass-through mode (`passThrough` is the gateway's option, the channel has its own flag) the tier stays.
 */
export function gateGeminiRequest(scan: ScannedObject, channel: Channel, passThrough: boolean): Buffer {
  const isFiltered = !passThrough && !channel.passThrough && !channel.allow.has('service_tier')
  const isStored = channel.disableStore && topValue(scan, 'store') === true
  const replace = new Map(isStored ? [['store', 'false']] : [])
  const contents = contentsWithoutEnvelopes(scan)
  if (contents) replace.set(...contents)
  return edit(scan.bytes, scan, { remove: isFiltered ? TIER : [], replace })
}
