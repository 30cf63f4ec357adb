import type { Socket } from 'node:net'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import type { OutgoingBody, UpstreamRequest, UpstreamResponseListener } from '@sluice/http1'
import type { Channel } from '../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { UpstreamKey } from './key-ring.ts'

/**
 * A request to an upstream: at first in the form of its protocol, then as the provider's server expects it.
 */
export interface WireRequest {
  /** The HTTP method; `POST` if absent. */
  readonly method?: 'GET' | 'DELETE' | 'POST'
  readonly protocol: ProtocolName
  /**
   * Path and query relative to the channel's base URL. The protocol's path has no version; a provider makes
   * its own path.
   */
  readonly path: string
  /** Headers, names and values alternately. A provider adds the credentials. */
  readonly headers: readonly string[]
  /** Body of the request; empty unless the method is POST. */
  readonly body: Buffer | OutgoingBody
  /** Content type of the body; JSON if absent. */
  readonly contentType?: string | undefined
  /** The upstream's name for the model; undefined for requests without a model. */
  readonly upstreamModel?: string
  readonly stream?: boolean
  /** Called with each body when it is sent. */
  readonly onBody?: ((body: Buffer | OutgoingBody) => void) | undefined
  /** Sends the request otherwise than by HTTP. */
  readonly transport?: UpstreamTransport
}

/** Receives the answer to a request, and may count what is held of it. */
export interface AnswerListener extends UpstreamResponseListener {
  /** Makes memory for bytes that wait until they can be converted. */
  newMemory?(): AnswerMemory
}

/** Memory of an answer, which is read no further while it is short. */
export interface AnswerMemory extends EventMemory {
  readonly isShort: boolean
  whenEnough(): Promise<void>
}

/** Sends requests to channels otherwise than by HTTP. */
export interface UpstreamTransport {
  send(request: WireRequest, way: UpstreamWay, listener: UpstreamResponseListener): UpstreamRequest
}

/** The beginning of a request. `headers`: names and values alternate. */
export interface UpstreamHead {
  readonly url: URL
  readonly headers: readonly string[]
}

/** How a transport reaches the channel of a request. Nothing may be sent for a hold that is settled: then its methods throw. */
export interface UpstreamWay {
  readonly channel: Channel
  readonly key: UpstreamKey
  /** Where the request is sent, and its headers with the credentials. Rejects with a `ProviderRefusal` if that is impossible. */
  head(): Promise<UpstreamHead>
  /** Opens a connection to the channel. */
  dial(): Promise<Socket>
  /** Sends the request by HTTP after all. */
  sendByHttp(listener: UpstreamResponseListener): UpstreamRequest
  requireHold(): void
}

/** A request whose body is JSON. */
export type JsonRequest = WireRequest & { readonly body: Buffer }

/** A request body after the provider's changes. */
export interface AdaptedBody<Body extends WireRequest['body'] = Buffer> {
  readonly body: Body
  /** Names of JSON members that were left out because the provider refuses them. */
  readonly dropped: readonly string[]
  /** Headers that replace those of the request; absent if they do not change. */
  readonly headers?: readonly string[]
}

/** Where a request is sent: the channel and its key. `now` is the time of the attempt. */
export interface ProviderTarget {
  readonly channel: Channel
  readonly key: UpstreamKey
  readonly now: Date
}

/**
 * How to use a provider's models: how URLs are built, requests signed, bodies changed, streams decoded and
 * errors reported. `docs/recipes/add-a-provider.md`.
 */
export interface Provider {
  /**
   * Response headers that `responses` reads, in lower case, in addition to `content-type` and `retry-after`.
   */
  readonly readHeaders?: readonly string[]
  /** Changes the body, once for all attempts. If absent, the protocol's body is sent unchanged. */
  adapt?(request: JsonRequest): AdaptedBody
  /**
   * Makes the request that is sent, from an adapted request, once per attempt. Throws or rejects with a
   * `ProviderRefusal` if that is impossible.
   */
  request(request: WireRequest, target: ProviderTarget): WireRequest | Promise<WireRequest>
  /**
   * Converts the provider's stream format and errors to those of the protocol. Absent if the provider uses
   * the protocol's own. `memory` records what is held until it can be converted.
   */
  responses?(
    request: WireRequest,
    listener: UpstreamResponseListener,
    memory?: EventMemory,
  ): UpstreamResponseListener
  /**
   * Called after a 401 response to the request `refused`. Discards what was derived from the key, such as an
   * access token. Returns whether the request should be sent once more with the same key.
   */
  renew?(target: Pick<ProviderTarget, 'channel' | 'key'>, refused: WireRequest): boolean
}

/**
 * Thrown before anything is sent, if a request to a provider is impossible. The message contains no secrets.
 */
export class ProviderRefusal extends Error {
  /** Whether the reason is the key, so that another key of the channel may work. */
  readonly isOfKey: boolean

  constructor(message: string, isOfKey = false) {
    super(message)
    this.name = 'ProviderRefusal'
    this.isOfKey = isOfKey
  }
}
