import type { Channel } from '../domain/records/channel.ts'
import type { ServerAddress } from '../telemetry/telemetry.ts'

const PORTS: ReadonlyMap<string, number> = new Map([
  ['https:', 443],
  ['http:', 80],
])

const KNOWN = new WeakMap<Channel, ServerAddress | false>()

/** Host and port of a channel's upstream; undefined if its address has none. */
export function serverAddress(channel: Channel): ServerAddress | undefined {
  let known = KNOWN.get(channel)
  if (known === undefined) {
    const url = URL.parse(channel.base_url)
    known = url ? { address: url.hostname, port: Number(url.port) || (PORTS.get(url.protocol) ?? 0) } : false
    KNOWN.set(channel, known)
  }
  return known || undefined
}
