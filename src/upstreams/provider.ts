import type { OutgoingBody, UpstreamResponseListener } from '@sluice/http1'
import type { Channel } from '../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { UpstreamKey } from './key-ring.ts'

/** A request for an upstream: first in its dialect, then as its provider's server expects it. */
export interface WireRequest {
  /** `POST` if absent. */
  readonly method?: 'GET' | 'DELETE' | 'POST'
  /** The dialect of the request. */
  readonly protocol: ProtocolName
  /**
   * Path and query relative to the channel's base URL. In the dialect it has no version; a provider builds its
   * own.
   */
  readonly path: string
  /** Names and values in turn. A provider adds the credentials. */
  readonly headers: readonly string[]
  /** Empty unless the method is POST. */
  readonly body: Buffer | OutgoingBody
  /** Content type of the body; JSON if absent. */
  readonly contentType?: string | undefined
  /** The upstream's name for the model; undefined for requests without a model. */
  readonly upstreamModel?: string
  /** Whether a stream is requested. */
  readonly stream?: boolean
  /** Gets each body as it is sent. */
  readonly onBody?: ((body: Buffer | OutgoingBody) => void) | undefined
}

/** Request whose body is JSON. */
export type JsonRequest = WireRequest & { readonly body: Buffer }

/** Request body after a provider's changes. */
export interface AdaptedBody<Body extends WireRequest['body'] = Buffer> {
  readonly body: Body
  /** Names of members that the provider refuses and that were left out. */
  readonly dropped: readonly string[]
  /** Headers in place of those of the request; absent if they stay. */
  readonly headers?: readonly string[]
}

/** Channel and key to which a request is sent, and the time of the attempt. */
export interface ProviderTarget {
  readonly channel: Channel
  readonly key: UpstreamKey
  readonly now: Date
}

/**
 * Defines how a provider serves models: how URLs are built, requests signed, bodies edited, streams framed
 * and errors reported. `docs/recipes/add-a-provider.md`.
 */
export interface Provider {
  /**
   * Response headers that `responses` reads, in lower case, in addition to `content-type` and `retry-after`.
   */
  readonly readHeaders?: readonly string[]
  /** Edits the body, once for all attempts. If absent, the dialect's body is sent unchanged. */
  adapt?(request: JsonRequest): AdaptedBody
  /**
   * Creates the provider's request from an adapted one, for each attempt. Throws or rejects with a
   * `ProviderRefusal` if no request can be made.
   */
  request(request: WireRequest, target: ProviderTarget): WireRequest | Promise<WireRequest>
  /** Converts the provider's framing and errors to those of the dialect. If absent, they are the same. */
  responses?(request: WireRequest, listener: UpstreamResponseListener): UpstreamResponseListener
  /**
   * Handles a 401 response to `refused` and discards what was derived from the key, for example a token.
   * Returns whether another attempt with the same key makes sense; there is at most one.
   */
  renew?(target: Pick<ProviderTarget, 'channel' | 'key'>, refused: WireRequest): boolean
}

/**
 * Thrown before anything is sent if a request to a provider is impossible. The message contains no secret.
 */
export class ProviderRefusal extends Error {
  /** Whether another key of the channel may work. */
  readonly isOfKey: boolean

  constructor(message: string, isOfKey = false) {
    super(message)
    this.name = 'ProviderRefusal'
    this.isOfKey = isOfKey
  }
}
