import type { Channel, ProtocolName } from '../domain/channel.ts'
import type { Hold } from '../domain/hold.ts'
import { credentials } from './credentials.ts'
import type { OutgoingBody } from './outgoing-body.ts'
import type { UpstreamResponseListener, UpstreamRequest } from './upstream-request.ts'
import { ConnectionPools, type ConnectionPoolsParts } from './http1/connection-pools.ts'
import { type Destination, destinationOf } from './http1/destination.ts'
import { headerLines, requestLine } from './http1/request-head.ts'
import type { UpstreamKey } from './key-ring.ts'
import { lookupBlockingMetadata } from './lookup-blocking-metadata.ts'
import { LOOP_MARK_HEADER } from './loop-detection.ts'

/** Prepared address and headers of a channel with one of its keys. */
interface CachedAddress {
  readonly destination: Destination
  readonly basePath: string
  /** Headers that every request carries before those with the key. */
  readonly headers: string
  /** Headers of the channel, after those with the key. */
  readonly channelHeaders: string
  /** Request line and common headers, by path: a path belongs to one dialect. */
  readonly heads: Map<string, string>
}

/** Request to a channel, without what the channel adds. */
export interface OutgoingRequest {
  /** `POST` if absent. */
  readonly method?: 'GET' | 'DELETE' | 'POST'
  /** The dialect that it is written in, which decides how the key is sent. */
  readonly protocol: ProtocolName
  /** Path and query. Those of requests with a body are few: their heads are cached. */
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** Empty unless it is a POST. */
  readonly body: Buffer | OutgoingBody
  /** Type of the body; JSON if absent. */
  readonly contentType?: string | undefined
}

/** HTTP client for all model upstreams. A request needs a hold, so that nothing unpaid goes upstream. */
export class UpstreamClient {
  readonly #pools: ConnectionPools
  // Addresses by channel and key; an entry is collected with its channel, which also holds the keys.
  readonly #addresses = new WeakMap<Channel, Map<string, CachedAddress>>()
  readonly #loopMark: string

  /** `loopMark` goes out with every request, so that one that comes back to the gateway is recognized. */
  constructor(loopMark: string, parts: ConnectionPoolsParts) {
    this.#loopMark = loopMark
    this.#pools = new ConnectionPools(parts)
  }

  /** Sends a request below the channel's base URL. */
  send(
    hold: Hold,
    channel: Channel,
    key: UpstreamKey,
    { method = 'POST', protocol, path, headers, body, contentType }: OutgoingRequest,
    listener: UpstreamResponseListener,
  ): UpstreamRequest {
    if (hold.isSettled) throw new Error(`hold ${hold.facts.id} is settled: nothing may be sent for it`)
    const address = this.#address(channel, key)
    const { connectMs, firstByteMs, idleMs } = channel.timeouts
    const keyHeaders = (): readonly string[] => credentials(protocol, key.value)
    // Each form has a boundary of its own, and requests without a body name one response each in their path.
    const start =
      body.length > 0 && contentType === undefined
        ? cachedHead(address, path, keyHeaders)
        : headOf(address, method, path, keyHeaders, contentType)
    const head = `${start}${headerLines(headers)}content-length: ${body.length}\r\n\r\n`
    const pool = this.#pools.poolFor(address.destination)
    return pool.send({ head, body, connectMs, firstByteMs, idleMs }, listener)
  }

  #address(channel: Channel, key: UpstreamKey): CachedAddress {
    let addresses = this.#addresses.get(channel)
    if (!addresses) this.#addresses.set(channel, (addresses = new Map()))
    let address = addresses.get(key.value)
    if (!address) addresses.set(key.value, (address = this.#addressOf(channel, key)))
    return address
  }

  #addressOf(channel: Channel, key: UpstreamKey): CachedAddress {
    const destination = destinationOf(
      channel,
      key.value,
      channel.isSetOverHttp ? lookupBlockingMetadata : undefined,
    )
    const { url } = destination
    const headers = ['host', url.host, 'connection', 'keep-alive']
    headers.push('accept-encoding', 'identity', LOOP_MARK_HEADER, this.#loopMark)
    const basePath = url.pathname === '/' ? '' : url.pathname
    return {
      destination,
      basePath,
      headers: headerLines(headers),
      channelHeaders: headerLines([...channel.headers].flat()),
      heads: new Map(),
    }
  }

  /** Closes every connection. */
  close(): void {
    this.#pools.close()
  }
}

function cachedHead(address: CachedAddress, path: string, keyHeaders: () => readonly string[]): string {
  const { heads } = address
  let head = heads.get(path)
  if (head === undefined) heads.set(path, (head = headOf(address, 'POST', path, keyHeaders)))
  return head
}

function headOf(
  { basePath, headers, channelHeaders }: CachedAddress,
  method: 'GET' | 'DELETE' | 'POST',
  path: string,
  keyHeaders: () => readonly string[],
  contentType = 'application/json',
): string {
  const own = headerLines(['content-type', contentType, ...keyHeaders()])
  return requestLine(method, basePath + path) + headers + own + channelHeaders
}
