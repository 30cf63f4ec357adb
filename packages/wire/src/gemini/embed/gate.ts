import type { UpstreamSettings } from '../../upstream-settings.ts'
import { editRequest, type EditedRequest } from '../../edit-request.ts'
import { changedArray, type Fate, withMember } from '../../json/change-array.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { resourceName } from '../method-path.ts'

/**
 * Adapts a native request to an upstream that has another name for the model: requests repeat the name from
 * the path, and the upstream compares both. All other bytes are the client's.
 */
export function gateEmbedRequest(
  scan: ScannedObject,
  upstreamModel: string,
  channel: UpstreamSettings,
  passThrough: boolean,
): EditedRequest {
  const name = JSON.stringify(resourceName(upstreamModel))
  const isOther = (model: Node): boolean => JSON.stringify(scan.parse(model)) !== name
  const model = scan.span('model')
  const requests = scan.span('requests')
  const changed =
    requests &&
    changedArray(scan, requests.node, (request): Fate => {
      const named = scan.memberOf(request, 'model')
      if (named === undefined || !isOther(named)) return 'stays'
      return { text: withMember(scan, request, named, name) }
    })
  const replace = new Map<string, string>()
  if (model && isOther(model.node)) replace.set('model', name)
  if (changed !== undefined) replace.set('requests', changed)
  return editRequest(scan, channel, passThrough || channel.pass_through, { remove: [], replace })
}
