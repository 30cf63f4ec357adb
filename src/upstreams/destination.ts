import { hash } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import { type Destination, originOf } from '@sluice/http1'
import type { Channel } from '../domain/records/channel.ts'
import { parseProxy } from './parse-proxy.ts'

/** Destination of requests: one channel with one key. Its id does not contain the key. */
export interface ChannelDestination extends Destination {
  /** Name of the channel. */
  readonly channel: string
  readonly url: URL
  readonly keyHash: string
  /** Hash of the proxy's URL, which may contain a password. */
  readonly proxyHash: string
}

/** Destination of a channel with one of its keys (empty if none). `lookup` replaces the system's resolver. */
export function destinationOf(channel: Channel, key: string, lookup?: LookupFunction): ChannelDestination {
  const url = new URL(channel.base_url)
  const upstream = `${channel.name}\0${url.origin}`
  const keyHash = hashOf(key)
  const proxyHash = hashOf(channel.proxy ?? '')
  const id = `${upstream}\0${keyHash}\0${proxyHash}\0${lookup ? 'looked up' : ''}`
  const origin = originOf(url, lookup, channel.proxy === null ? undefined : parseProxy(channel.proxy))
  return { id, channel: channel.name, upstream, url, origin, keyHash, proxyHash }
}

/** Reports whether one of the channels still has this address, proxy and key. */
export function isConfigured(
  { channel, url, keyHash, proxyHash }: ChannelDestination,
  channels: readonly Channel[],
): boolean {
  const found = channels.find(({ name }) => name === channel)
  if (!found || new URL(found.base_url).origin !== url.origin) return false
  if (hashOf(found.proxy ?? '') !== proxyHash) return false
  return found.keys.length === 0 ? keyHash === hashOf('') : found.keys.some((key) => hashOf(key) === keyHash)
}

function hashOf(key: string): string {
  return hash('sha256', key)
}
