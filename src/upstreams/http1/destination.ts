import { hash } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import type { Channel } from '../../domain/channel.ts'
import { type Origin, originOf } from './origin.ts'

/** Whose calls may share connections: those of one channel with one key. */
export interface Destination {
  /** All of it as one text, without the key itself. */
  readonly id: string
  /** The channel's name. */
  readonly channel: string
  /** The channel and its address: what trust in its answers is kept by. */
  readonly upstream: string
  readonly url: URL
  /** Outlives a pool, and with it the TLS session that the next connection begins with. */
  readonly origin: Origin
  readonly keyHash: string
}

/**
 * Where calls of a channel with one of its keys go; the key is empty for a channel that has none. `lookup`
 * finds the addresses of its host in place of the system.
 */
export function destinationOf(channel: Channel, key: string, lookup?: LookupFunction): Destination {
  const url = new URL(channel.baseUrl)
  const upstream = `${channel.name}\0${url.origin}`
  const keyHash = hashOf(key)
  const id = `${upstream}\0${keyHash}\0${lookup ? 'looked up' : ''}`
  return { id, channel: channel.name, upstream, url, origin: originOf(url, lookup), keyHash }
}

/** Whether one of the channels still goes there, with that key. */
export function isConfigured({ channel, url, keyHash }: Destination, channels: readonly Channel[]): boolean {
  const found = channels.find(({ name }) => name === channel)
  if (!found || new URL(found.baseUrl).origin !== url.origin) return false
  return found.keys.length === 0 ? keyHash === hashOf('') : found.keys.some((key) => hashOf(key) === keyHash)
}

function hashOf(key: string): string {
  return hash('sha256', key)
}
