import { isRouter, type UpstreamSettings } from './upstream-settings.ts'
import type { Dropped } from './codec.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import { withMembers } from './json/with-members.ts'

/** Members of OpenRouter's `provider` that only restrict which providers may answer and at which price. */
const RESTRICTING: ReadonlySet<string> = new Set([
  'data_collection',
  'zdr',
  'ignore',
  'require_parameters',
  'quantizations',
  'max_price',
])

/** OpenRouter's `provider` member of a request, as JSON text. */
export interface ClientProvider {
  readonly whole: string
  /** The members that are always kept; undefined if there are none. */
  readonly restricting: string | undefined
}

/** JSON text of the restricting members of `provider`; undefined if there are none. */
export function restrictingPart(scan: ScannedObject, provider: Node): string | undefined {
  return withMembers(scan, provider, (name) => RESTRICTING.has(name))
}

/** The `provider` member of a request that is to be converted; undefined if there is none. */
export function clientProvider(scan: ScannedObject): ClientProvider | undefined {
  const member = scan.span('provider')
  if (!member || scan.kindOf(member.node) !== 'object') return undefined
  return { whole: scan.textOf(member.node), restricting: restrictingPart(scan, member.node) }
}

/**
 * The part of a client's `provider` member that a converted request passes to a channel; undefined if there
 * is none. If nothing of the member is left out, its name is removed from the dropped fields. `docs/api.md:
 * Other models and prices`.
 */
export function providerFor(
  given: ClientProvider | undefined,
  { allow, base_url }: Pick<UpstreamSettings, 'allow' | 'base_url'>,
  dropped: Dropped,
): string | undefined {
  if (!given) return undefined
  const isAllowed = allow.has('provider')
  if (!isAllowed && !isRouter(base_url)) return undefined
  const sent = isAllowed ? given.whole : given.restricting
  if (sent === given.whole) dropped.delete('provider')
  return sent
}

/** Adds the `provider` member to a converted request. */
export function withProvider(body: Buffer, provider: string | undefined): Buffer {
  if (provider === undefined) return body
  return Buffer.concat([body.subarray(0, -1), Buffer.from(`,"provider":${provider}}`)])
}
