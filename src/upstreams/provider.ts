import type { OutgoingBody, UpstreamResponseListener } from '@sluice/http1'
import type { Channel } from '../domain/records/channel.ts'
import type { ProtocolName } from '../domain/protocols.ts'
import type { UpstreamKey } from './key-ring.ts'

/** Request as its dialect has it, before a provider makes its own of it. */
export interface DialectRequest {
  /** `POST` if absent. */
  readonly method?: 'GET' | 'DELETE' | 'POST'
  /** The dialect that it is written in. */
  readonly protocol: ProtocolName
  /** Path and query of the dialect's endpoint, below the version. */
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** Empty unless it is a POST. */
  readonly body: Buffer | OutgoingBody
  /** Type of the body; JSON if absent. */
  readonly contentType?: string | undefined
  /** The model's name as the upstream knows it; undefined for requests of no model. */
  readonly upstreamModel?: string
  /** The response is asked for as a stream. */
  readonly stream?: boolean
}

/** Request as a provider's server takes it. */
export interface ProviderRequest {
  /** Path and query below the channel's base URL. */
  readonly path: string
  /** Names and values in turn, the credentials included. */
  readonly headers: readonly string[]
  readonly body: Buffer | OutgoingBody
}

/** Request whose body is JSON. */
export type JsonRequest = DialectRequest & { readonly body: Buffer }

/** Request with the body that a provider takes. */
export interface Adapted<Body extends DialectRequest['body'] = Buffer> {
  readonly body: Body
  /** Names of what the provider refuses, and was left out. */
  readonly dropped: readonly string[]
}

/** Channel and key that a request goes to, and the time of the attempt. */
export interface ProviderTarget {
  readonly channel: Channel
  readonly key: UpstreamKey
  readonly now: Date
}

/**
 * A place that serves models in a way of its own: how URLs are built, attempts signed, bodies edited, streams
 * framed and errors worded. `docs/recipes/add-a-provider.md`.
 */
export interface Provider {
  /** Headers of a response that `responses` reads beside `content-type` and `retry-after`, in lower case. */
  readonly readHeaders?: readonly string[]
  /** Edits the body, once for all attempts. Absent = the dialect's is taken as it is. */
  adapt?(request: JsonRequest): Adapted
  /**
   * Makes the provider's request of an adapted one, anew for each attempt. Throws or rejects with a
   * `ProviderRefusal` where the provider cannot be asked.
   */
  request(request: DialectRequest, target: ProviderTarget): ProviderRequest | Promise<ProviderRequest>
  /** Reads the provider's framing and errors, and hands on those of the dialect. Absent = they are alike. */
  responses?(request: DialectRequest, listener: UpstreamResponseListener): UpstreamResponseListener
  /**
   * Handles a 401 to `refused`: discards what was derived from the key, a token for example. Whether another
   * attempt with the same key makes sense; at most one follows.
   */
  renew?(target: Pick<ProviderTarget, 'channel' | 'key'>, refused: ProviderRequest): boolean
}

/** A request that a provider cannot be asked, before anything is sent. The message holds no secret. */
export class ProviderRefusal extends Error {
  /** Another key of the channel may do. */
  readonly isOfKey: boolean

  constructor(message: string, isOfKey = false) {
    super(message)
    this.name = 'ProviderRefusal'
    this.isOfKey = isOfKey
  }
}
