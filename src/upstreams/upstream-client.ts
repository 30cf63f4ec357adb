import { hash } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import {
  ConnectionPools,
  type Destination,
  headerLines,
  originOf,
  requestLine,
  type UpstreamRequest,
  type UpstreamResponseListener,
} from '@sluice/http1'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ProtocolName } from '@sluice/wire/protocols'
import { countBodyWithPrompt } from '@sluice/wire/gemini'
import { withSystemPrompt } from '@sluice/wire/system-prompt'
import type { Hold } from '../domain/hold.ts'
import { type Channel, type RequestBodyEdits, editsRequestBodies } from '../domain/records/channel.ts'
import { channelTierEdits, mayNameTier, type TierEdits, withTierHeaders } from './channel-tier.ts'
import type { UpstreamKey } from './key-ring.ts'
import { dial } from './dial.ts'
import { lookupBlockingMetadata } from './lookup-blocking-metadata.ts'
import type { ProxyOfAddress } from './environment-proxies.ts'
import { LOOP_MARK_HEADER } from './loop-detection.ts'
import { parseProxy } from './parse-proxy.ts'
import { ProviderExchange } from './provider-exchange.ts'
import type { AdaptedBody, AnswerListener, UpstreamWay, WireRequest } from './provider.ts'
import { PROVIDER_LIMIT_HEADERS } from './stated-limits.ts'
import type { Providers } from './providers.ts'

/** Address and headers of a channel with one of its keys, prepared for many requests. */
interface CachedAddress {
  readonly destination: ChannelDestination
  readonly basePath: string
  /** Headers that all requests have, as text; they come before the header with the key. */
  readonly headers: string
  /** Headers from the channel's configuration, as text; they come after the header with the key. */
  readonly channelHeaders: string
  /** Request lines with headers, as text, by path. Each path belongs to only one protocol. */
  readonly heads: Map<string, string>
}

/** Headers of answers to uploads: where the content of a file goes. */
const UPLOAD_HEADERS = ['x-goog-upload-url'] as const

export interface UpstreamClientDependencies {
  /** Returns the channels in the current configuration. After each change it returns a new list. */
  readonly channels: () => readonly Channel[]
  /**
   * Called when a channel's upstream sends bytes without a request. `isNews` is true if that has not happened
   * recently.
   */
  readonly onUnsolicited: (channel: string, isNews: boolean) => void
  readonly providers: Providers
  /** The proxy for an address of a channel that has none. */
  readonly proxyOf: ProxyOfAddress
}

/**
 * HTTP client for all model upstreams. Each request needs a hold (reserved quota), so that nothing is sent
 * that nobody pays for.
 */
export class UpstreamClient {
  readonly #pools: ConnectionPools<ChannelDestination>
  // Addresses by channel and key. They are garbage-collected together with the channel, which also holds the
  // keys.
  readonly #addresses = new WeakMap<Channel, Map<string, CachedAddress>>()
  readonly #loopMark: string
  readonly #providers: Providers
  readonly #proxyOf: ProxyOfAddress

  /**
   * `loopMark` is sent with every request, so that the gateway recognises a request that comes back to
   * itself.
   */
  constructor(loopMark: string, { channels, onUnsolicited, providers, proxyOf }: UpstreamClientDependencies) {
    this.#loopMark = loopMark
    this.#proxyOf = proxyOf
    this.#pools = new ConnectionPools<ChannelDestination>({
      readHeaders: [...providers.readHeaders, ...PROVIDER_LIMIT_HEADERS, ...UPLOAD_HEADERS],
      source: {
        current: channels,
        has: (destination) => isDestinationConfigured(destination, channels(), proxyOf),
      },
      onUnsolicited: ({ channel }, isNews) => onUnsolicited(channel, isNews),
    })
    this.#providers = providers
  }

  /**
   * Adapts the body to the channel's upstream, once for all attempts. `dropped` in the result names what was
   * left out.
   */
  adapt(channel: Channel, request: WireRequest): AdaptedBody<WireRequest['body']> {
    const { body: given } = request
    // Only a JSON object can be changed, not a form or an empty body.
    if (!Buffer.isBuffer(given) || given.length === 0 || request.contentType !== undefined)
      return { body: given, dropped: [] }
    const taken = withoutRefusedMembers(given, request, channel)
    const tier = tierEditsFor(channel, request)
    const body = tier || editsRequestBodies(channel) ? editedBody(taken, request, channel, tier) : taken
    const headers = tier ? withTierHeaders(request.headers, tier.headers) : request.headers
    const adapted = this.#providers.of(channel)?.adapt?.({ ...request, headers, body }) ?? {
      body,
      dropped: [],
    }
    return headers === request.headers ? adapted : { headers, ...adapted }
  }

  /** Sends an adapted request to a path relative to the channel's base URL. */
  send(
    hold: Hold,
    channel: Channel,
    key: UpstreamKey,
    request: WireRequest,
    listener: AnswerListener,
  ): UpstreamRequest {
    const { transport, ...byHttp } = request
    if (!transport) return this.#sendByHttp(hold, channel, key, request, listener)
    return transport.send(request, this.#wayOf(hold, channel, key, byHttp), listener)
  }

  #wayOf(hold: Hold, channel: Channel, key: UpstreamKey, request: WireRequest): UpstreamWay {
    const { destination, basePath } = this.#address(channel, key)
    const { url, origin } = destination
    const provider = this.#providers.of(channel)
    return {
      channel,
      key,
      head: async () => {
        const made = await provider?.request(request, { channel, key, now: new Date() })
        const { path, headers } = made ?? request
        const added = [
          LOOP_MARK_HEADER,
          this.#loopMark,
          ...(made ? [] : credentials(request.protocol, key.value)),
          ...[...channel.headers].flat(),
        ]
        return { url: new URL(basePath + path, url), headers: [...headers, ...added] }
      },
      dial() {
        requireUnsettled(hold)
        return dial(origin, channel.timeouts.connect)
      },
      sendByHttp: (listener) => this.#sendByHttp(hold, channel, key, request, listener),
      requireHold: () => requireUnsettled(hold),
    }
  }

  #sendByHttp(
    hold: Hold,
    channel: Channel,
    key: UpstreamKey,
    request: WireRequest,
    listener: AnswerListener,
  ): UpstreamRequest {
    requireUnsettled(hold)
    const address = this.#address(channel, key)
    const { method = 'POST', protocol, path, headers, body, contentType } = request
    const provider = this.#providers.of(channel)
    if (provider) {
      return new ProviderExchange(provider, request, { channel, key }, listener, (made, listener) => {
        requireUnsettled(hold)
        request.onBody?.(made.body)
        const start = headOf(address, method, made.path, () => [], contentType)
        return this.#sendHead(channel, address, start, made, listener)
      })
    }
    request.onBody?.(body)
    const keyHeaders = (): readonly string[] => credentials(protocol, key.value)
    // The request line and the headers are cached, unless they are unique: headers of forms contain a
    // boundary, and paths of requests without a body contain a response's id.
    const start =
      body.length > 0 && contentType === undefined
        ? cachedHead(address, path, keyHeaders)
        : headOf(address, method, path, keyHeaders, contentType)
    return this.#sendHead(channel, address, start, { headers, body }, listener)
  }

  #sendHead(
    { timeouts }: Channel,
    { destination }: CachedAddress,
    start: string,
    { headers, body }: Pick<WireRequest, 'headers' | 'body'>,
    listener: UpstreamResponseListener,
  ): UpstreamRequest {
    const head = `${start}${headerLines(headers)}content-length: ${body.length}\r\n\r\n`
    const { connect: connectMs, first_byte: responseMs, idle: idleMs } = timeouts
    return this.#pools.poolFor(destination).send({ head, body, connectMs, responseMs, idleMs }, listener)
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
      this.#proxyOf,
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

function requireUnsettled({ id, isSettled }: Hold): void {
  if (isSettled) throw new Error(`hold ${id} is settled: nothing may be sent for it`)
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

/** Name of the header that contains the key, and the text before the key in it, by protocol. */
const HEADERS: Record<ProtocolName, { readonly name: string; readonly prefix: string }> = {
  chat: { name: 'authorization', prefix: 'Bearer ' },
  messages: { name: 'x-api-key', prefix: '' },
  responses: { name: 'authorization', prefix: 'Bearer ' },
  gemini: { name: 'x-goog-api-key', prefix: '' },
  converse: { name: 'authorization', prefix: 'Bearer ' },
  rerank: { name: 'authorization', prefix: 'Bearer ' },
}

/** Returns the header that contains `key`, as name and value; empty without a key. */
function credentials(protocol: ProtocolName, key: string): string[] {
  if (key === '') return []
  const { name, prefix } = HEADERS[protocol]
  return [name, prefix + key]
}

/** Matches paths of requests to which the changes in a channel's configuration apply. */
const EDITED =
  /^\/(?:chat\/completions|completions|messages|responses|converse|converse-stream|rerank)$|:(?:generateContent|streamGenerateContent)\b/
function tierEditsFor(
  channel: Channel,
  { path, protocol }: Pick<WireRequest, 'path' | 'protocol'>,
): TierEdits | undefined {
  return channel.service_tier !== null && mayNameTier(path) ? channelTierEdits(channel, protocol) : undefined
}

/** Matches paths of endpoints that only count tokens. They accept fewer JSON members than calls. */
const COUNTING = /\/(?:count_tokens|input_tokens)$/

/** Path of compactions, which accept few of the JSON members of calls. */
const COMPACTION = '/responses/compact'

/**
 * Applies the changes in a channel's configuration to a body, in one step. To requests that count tokens,
 * only the system prompt is added; in compactions, only the service tier is changed; requests to other
 * endpoints stay unchanged.
 */
function editedBody(
  body: Buffer,
  { protocol, path, upstreamModel = '' }: Pick<WireRequest, 'protocol' | 'path' | 'upstreamModel'>,
  { provider, system_prompt, override }: RequestBodyEdits & Pick<Channel, 'provider'>,
  tier: TierEdits | undefined,
): Buffer {
  if (path.endsWith(':countTokens')) {
    if (system_prompt === '') return body
    return countBodyWithPrompt(
      scanObject(body, RESPONSE_LIMITS),
      upstreamModel,
      system_prompt,
      provider === 'vertex',
    )
  }
  const isCount = COUNTING.test(path)
  const isCompaction = path === COMPACTION
  if (!isCount && !isCompaction && !EDITED.test(path)) return body
  const scan = scanObject(body, RESPONSE_LIMITS)
  const replace = new Map(isCount ? undefined : tier?.set)
  const prompt =
    system_prompt === '' || isCompaction ? undefined : withSystemPrompt(scan, protocol, system_prompt)
  if (prompt) replace.set(...prompt)
  if (isCount) return applyEdits(body, scan, { remove: [], replace })
  const isChanged = (name: string): boolean => !isCompaction || name === 'service_tier'
  for (const [name, text] of override.default)
    if (isChanged(name) && !scan.has(name) && !tier?.remove.includes(name)) replace.set(name, text)
  for (const [name, text] of override.set) if (isChanged(name)) replace.set(name, text)
  const remove = [...(tier?.remove ?? []), ...override.remove.filter(isChanged)]
  return applyEdits(body, scan, { remove, replace })
}

interface RefusedMembers {
  readonly host: RegExp
  readonly protocol: ProtocolName
  readonly members: readonly string[]
}

/** JSON members that a vendor refuses, although it always does what the members demand. */
const REFUSED: readonly RefusedMembers[] = [
  // Mistral always sends the usage in the last chunk of a stream.
  { host: /(?:^|\.)mistral\.ai$/, protocol: 'chat', members: ['stream_options'] },
]
const NOTHING = new Map<string, string>()
/** Rows of `REFUSED` by base URL, so that not every call must parse the URL. */
const byAddress = new Map<string, readonly RefusedMembers[]>()
const MAX_ADDRESSES = 1_000

/**
 * Removes the JSON members that the channel's vendor refuses. Returns the same Buffer if the vendor refuses
 * none.
 */
export function withoutRefusedMembers(
  body: Buffer,
  { protocol }: Pick<WireRequest, 'protocol'>,
  { base_url: baseUrl }: Pick<Channel, 'base_url'>,
): Buffer {
  const rows = refusedAt(baseUrl)
  if (rows.length === 0) return body
  const remove = rows.flatMap((row) => (row.protocol === protocol ? row.members : []))
  return remove.length > 0
    ? applyEdits(body, scanObject(body, RESPONSE_LIMITS), { remove, replace: NOTHING })
    : body
}

function refusedAt(baseUrl: string): readonly RefusedMembers[] {
  const known = byAddress.get(baseUrl)
  if (known) return known
  if (byAddress.size >= MAX_ADDRESSES) byAddress.clear()
  const { hostname } = new URL(baseUrl)
  const rows = REFUSED.filter(({ host }) => host.test(hostname))
  byAddress.set(baseUrl, rows)
  return rows
}

/**
 * Where connections go: a channel with one of its keys. The id of the destination does not contain the key
 * itself.
 */
export interface ChannelDestination extends Destination {
  /** Name of the channel. */
  readonly channel: string
  readonly url: URL
  readonly keyHash: string
  /** Hash of the proxy's URL. The URL itself may contain a password. */
  readonly proxyHash: string
}

const NO_PROXY: ProxyOfAddress = () => undefined

/**
 * The destination for a channel with one of its keys (empty if it has none). `lookup` replaces the system's
 * resolver of host names; `proxyOf` has the proxy of an address, if the channel has none.
 */
export function destinationOf(
  channel: Channel,
  key: string,
  lookup?: LookupFunction,
  proxyOf = NO_PROXY,
): ChannelDestination {
  const url = new URL(channel.base_url)
  const upstream = `${channel.name}\0${url.origin}`
  const keyHash = hashOf(key)
  const proxy = channel.proxy ?? proxyOf(url)
  const proxyHash = hashOf(proxy ?? '')
  const id = `${upstream}\0${keyHash}\0${proxyHash}\0${lookup ? 'looked up' : ''}`
  const origin = {
    ...originOf(url, lookup, proxy === undefined ? undefined : parseProxy(proxy)),
    // Whoever set the address did not choose this proxy, which must not reach what the gateway would not.
    isHostChecked: channel.proxy === null,
  }
  return { id, channel: channel.name, upstream, url, origin, keyHash, proxyHash }
}

/** Whether one of the channels still has the address, proxy and key of this destination. */
export function isDestinationConfigured(
  { channel, url, keyHash, proxyHash }: ChannelDestination,
  channels: readonly Channel[],
  proxyOf = NO_PROXY,
): boolean {
  const found = channels.find(({ name }) => name === channel)
  if (!found || new URL(found.base_url).origin !== url.origin) return false
  if (hashOf(found.proxy ?? proxyOf(url) ?? '') !== proxyHash) return false
  return found.keys.length === 0 ? keyHash === hashOf('') : found.keys.some((key) => hashOf(key) === keyHash)
}

function hashOf(key: string): string {
  return hash('sha256', key)
}
