import type { Channel } from '../../domain/records/channel.ts'
import { editRequest, type EditedRequest } from '../edited-request.ts'
import { withMembers } from '../json/with-members.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { resourceName } from './method-path.ts'
import { contentsWithAcceptedSignatures } from './native-signatures.ts'
import { camelCase, nodeOf, snakeCase, topMember, topValue } from './spelling.ts'

/** Fields that are removed unless the channel allows `service_tier`. */
const TIER = ['serviceTier', snakeCase('serviceTier')] as const

/** Settings of `generationConfig` by which another model answers. */
const ROUTING_CONFIG: readonly string[] = ['routingConfig', 'modelSelectionConfig']

/** The model of a request: by the name in its path, and by the one that the upstream knows. */
export interface GeminiModel {
  readonly name: string
  readonly upstreamModel: string
  /** Whether calls without a signature get the stand-in; absent where the contents are texts alone. */
  readonly requiresSignatures: (() => boolean) | undefined
}

/**
 * Adapts a native request to a channel: removes the tier, what names another model, and what other providers
 * signed, gives calls without a signature the stand-in if the model requires signatures, and has nothing
 * stored where the channel disables that. All other bytes are the client's; the model's name is in the path.
 * In pass-through mode (`passThrough` is the gateway's option, the channel has its own flag) the tier and
 * other models stay.
 */
export function gateGeminiRequest(
  scan: ScannedObject,
  { name, upstreamModel, requiresSignatures }: GeminiModel,
  channel: Channel,
  passThrough: boolean,
): EditedRequest {
  const isOpen = passThrough || channel.pass_through
  const remove = isOpen || channel.allow.has('service_tier') ? [] : [...TIER]
  const isStored = channel.disable_store && topValue(scan, 'store') === true
  const replace = new Map(isStored ? [['store', 'false']] : [])
  const contents = requiresSignatures && contentsWithAcceptedSignatures(scan, requiresSignatures)
  if (contents) replace.set(...contents)
  const others: string[] = []
  if (!isOpen && !channel.allow.has('models')) {
    const named = topValue(scan, 'model')
    if (typeof named === 'string' && resourceName(named) !== resourceName(upstreamModel)) {
      remove.push('model')
      if (resourceName(named) !== resourceName(name)) others.push('model')
    }
    const config = topMember(scan, 'generationConfig')
    const routing = config && scan.kindOf(config.node) === 'object' ? routingIn(scan, config.node) : []
    if (config && routing.length > 0) {
      others.push(...routing)
      replace.set(config.key, withMembers(scan, config.node, (key) => !isRouting(key)) ?? '{}')
    }
  }
  const { body, dropped } = editRequest(scan, channel, isOpen, { remove, replace })
  return { body, dropped: [...others, ...dropped] }
}

function isRouting(key: string): boolean {
  return ROUTING_CONFIG.includes(camelCase(key))
}

function routingIn(scan: ScannedObject, config: Node): string[] {
  return ROUTING_CONFIG.filter((field) => nodeOf(scan, config, field) !== undefined)
}
