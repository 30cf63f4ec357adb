import { Readable } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import { packageVersion } from '../domain/version.ts'
import { lookupBlockingMetadata } from './lookup-blocking-metadata.ts'
import { untilAborted } from './until-aborted.ts'

/** Limits of a `NamedServerClient`. */
export interface NamedServerLimits {
  /** Maximum number of connections to one server. Further requests wait, within their timeout. */
  readonly connections: number
  /** Timeouts of the HTTP client, in milliseconds, for requests whose `signal` allows more. */
  readonly maxMs: number
}

/**
 * Sends requests to servers that the configuration names. Their addresses may be private, but not those of metadata
 * services. Redirects are not followed, because they could lead to any address.
 */
export class NamedServerClient {
  readonly #limits: NamedServerLimits
  #agent: Agent | undefined

  constructor(limits: NamedServerLimits) {
    this.#limits = limits
  }

  /**
   * Rejects with the error of the connection, or with the reason of `signal`. `onSent`: called when a connection begins to
   * send the body, so not while the request waits for one.
   */
  async request(
    method: 'POST' | 'DELETE',
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string | Buffer | undefined,
    signal: AbortSignal,
    onSent?: () => void,
  ): Promise<Dispatcher.ResponseData> {
    // Loaded with the first request, so that gateways without such servers start faster.
    const { Agent, request } = await import('undici')
    const { connections, maxMs } = this.#limits
    this.#agent ??= new Agent({
      allowH2: false,
      connections,
      maxHeaderSize: 16_384,
      headersTimeout: maxMs,
      bodyTimeout: maxMs,
      connect: { timeout: maxMs, lookup: lookupBlockingMetadata },
    })
    const sending = request(url, {
      method,
      dispatcher: this.#agent,
      signal,
      headers: {
        'accept-encoding': 'identity',
        'user-agent': `sluice/${packageVersion()}`,
        ...headers,
        ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
      },
      ...(body !== undefined && { body: onSent ? observed(body, signal, onSent) : body }),
    })
    // The client itself looks at the signal only once the request has its connection.
    const response = await untilAborted(sending, signal)
    // A body that is destroyed emits an error, which can be ignored.
    response.body.on('error', () => {})
    return response
  }

  /** Ends all running requests. */
  async close(): Promise<void> {
    await this.#agent?.destroy()
  }
}

/** A body that reports when it is read, which is when it is sent or the request turns out to be aborted. */
function observed(body: string | Buffer, signal: AbortSignal, onSent: () => void): Readable {
  return Readable.from(
    (function* () {
      if (!signal.aborted) onSent()
      yield Buffer.from(body)
    })(),
  )
}
