import type { Channel } from '../domain/records/channel.ts'
import { edit } from '@sluice/wire/json/json-edit'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { WireRequest } from './provider.ts'

/** Members of chat requests that a vendor refuses although it does by default what they request. */
const REFUSED: readonly { readonly host: RegExp; readonly members: readonly string[] }[] = [
  // The last chunk of every stream contains the usage.
  { host: /(?:^|\.)mistral\.ai$/, members: ['stream_options'] },
]
const NOTHING = new Map<string, string>()
/** Refused members by base URL, cached so that calls need not parse the URL. */
const byAddress = new Map<string, readonly string[]>()
const MAX_ADDRESSES = 1_000

/** The body without the members that the channel's vendor refuses; the same Buffer if it has none. */
export function withoutRefusedMembers(
  body: Buffer,
  { protocol }: Pick<WireRequest, 'protocol'>,
  { base_url: baseUrl }: Pick<Channel, 'base_url'>,
): Buffer {
  if (protocol !== 'chat') return body
  const remove = refusedAt(baseUrl)
  return remove.length > 0 ? edit(body, scanObject(body), { remove, replace: NOTHING }) : body
}

function refusedAt(baseUrl: string): readonly string[] {
  const known = byAddress.get(baseUrl)
  if (known) return known
  if (byAddress.size >= MAX_ADDRESSES) byAddress.clear()
  const { hostname } = new URL(baseUrl)
  const members = REFUSED.find(({ host }) => host.test(hostname))?.members ?? []
  byAddress.set(baseUrl, members)
  return members
}
