import { type Channel, isRouter } from '../domain/records/channel.ts'
import type { Dropped } from './codec.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import { withMembers } from './json/with-members.ts'

/** Members of OpenRouter's `provider` that only restrict who may answer, and at which price. */
const RESTRICTING: ReadonlySet<string> = new Set([
  'data_collection',
  'zdr',
  'ignore',
  'require_parameters',
  'quantizations',
  'max_price',
])

/** OpenRouter's `provider` of a request, as JSON texts. */
export interface ClientProvider {
  readonly whole: string
  /** The part that is always kept; undefined if there is none. */
  readonly restricting: string | undefined
}

/** JSON text of the members of `provider` that only restrict; undefined if there are none. */
export function restrictingPart(scan: ScannedObject, provider: Node): string | undefined {
  return withMembers(scan, provider, (name) => RESTRICTING.has(name))
}

/** The `provider` of a request that is converted; undefined without one. */
export function clientProvider(scan: ScannedObject): ClientProvider | undefined {
  const member = scan.span('provider')
  if (!member || scan.kindOf(member.node) !== 'object') return undefined
  return { whole: scan.textOf(member.node), restricting: restrictingPart(scan, member.node) }
}

/**
 * The part of a client's `provider` that a converted request brings to a channel; undefined if there is none.
 * The field is no longer listed where nothing of it is left out. `docs/api.md: Other models and prices`.
 */
export function providerFor(
  given: ClientProvider | undefined,
  { allow, base_url }: Pick<Channel, 'allow' | 'base_url'>,
  dropped: Dropped,
): string | undefined {
  if (!given) return undefined
  const isAllowed = allow.has('provider')
  if (!isAllowed && !isRouter(base_url)) return undefined
  const sent = isAllowed ? given.whole : given.restricting
  if (sent === given.whole) dropped.delete('provider')
  return sent
}

/** A converted request with the `provider` that goes along. */
export function withProvider(body: Buffer, provider: string | undefined): Buffer {
  if (provider === undefined) return body
  return Buffer.concat([body.subarray(0, -1), Buffer.from(`,"provider":${provider}}`)])
}
