import type { Channel } from '../../domain/records/channel.ts'
import type { Settings } from '../../domain/settings.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { ResponseStore } from './response-store.ts'

/** Channel and key through which a response that the provider stores can be reached. */
export interface ResponseAccount {
  readonly channel: Channel
  readonly key: UpstreamKey
}

/**
 * The channel and the key that created a response that the provider stores. If that key no longer exists, the
 * channel's first key, because providers store responses per organisation, and an organisation's keys change.
 * Undefined if the channel no longer exists.
 */
export function accountOf(
  { channel: name, keyTag }: StoredResponse,
  { channels }: Settings,
  responses: ResponseStore,
): ResponseAccount | undefined {
  const channel = channels.find((one) => one.name === name && one.protocol.includes('responses'))
  if (!channel) return undefined
  const value = channel.keys.find((key) => responses.keyTag(key) === keyTag) ?? channel.keys[0] ?? ''
  return { channel, key: { value } }
}
