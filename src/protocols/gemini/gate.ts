import type { Channel } from '../../domain/channel.ts'
import { edit } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { contentsWithAcceptedSignatures } from './native-signatures.ts'
import { snakeCase, topValue } from './spelling.ts'

/** Fields that are removed unless the channel allows `service_tier`. */
const TIER = ['serviceTier', snakeCase('serviceTier')] as const

/**
 * Adapts a native request to a channel: removes the tier and what other providers signed, gives calls that
 * nobody signed the stand-in if the model requires signatures (`requiresSignatures`, absent where the
 * contents are texts alone), and has nothing stored where the channel disables that. All other bytes are the
 * client's; the model's name is in the path. In pass-through mode (`passThrough` is the gateway's option, the
 * channel has its own flag) the tier stays.
 */
export function gateGeminiRequest(
  scan: ScannedObject,
  channel: Channel,
  passThrough: boolean,
  requiresSignatures: (() => boolean) | undefined,
): Buffer {
  const isFiltered = !passThrough && !channel.passThrough && !channel.allow.has('service_tier')
  const isStored = channel.disableStore && topValue(scan, 'store') === true
  const replace = new Map(isStored ? [['store', 'false']] : [])
  const contents = requiresSignatures && contentsWithAcceptedSignatures(scan, requiresSignatures)
  if (contents) replace.set(...contents)
  return edit(scan.bytes, scan, { remove: isFiltered ? TIER : [], replace })
}
