import { TransportError, type UpstreamResponseHead } from '@sluice/http1'
import type { Hold } from '../domain/hold.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { UpstreamKey } from './key-ring.ts'
import type { WireRequest } from './provider.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** Recipient of a request: a channel with one of its keys, and the quota reserved for the request. */
export interface RequestRecipient {
  readonly hold: Hold
  readonly channel: Channel
  readonly key: UpstreamKey
}

/** An upstream's response, with any status code. Its body arrives while it is read. */
export interface StreamedExchange extends UpstreamResponseHead {
  /**
   * The pieces of the body. Throws `TransportError` if the connection breaks. Leaving the loop early cancels
   * the request.
   */
  readonly pieces: AsyncGenerator<Buffer, void, undefined>
}

/**
 * Sends a request and resolves to the head of the response. The body is received only as fast as it is read.
 * Rejects with `TransportError` if there is no response within `timeoutMs` milliseconds; the body must also
 * end within this time. `onUnwanted` is called with a function that cancels the request.
 */
export function requestStreamedResponse(
  upstreams: UpstreamClient,
  { hold, channel, key }: RequestRecipient,
  request: WireRequest,
  timeoutMs: number,
  onUnwanted?: (cancel: () => void) => void,
): Promise<StreamedExchange> {
  const head = Promise.withResolvers<StreamedExchange>()
  const arrived: Buffer[] = []
  let end: 'open' | 'ended' | TransportError = 'open'
  let wake = (): void => {}
  const finish = (how: typeof end): void => {
    clearTimeout(timer)
    end = how
    wake()
    if (how instanceof TransportError) head.reject(how)
  }
  const { body, headers = request.headers } = upstreams.adapt(channel, request)
  const exchange = upstreams.send(
    hold,
    channel,
    key,
    { ...request, headers, body },
    {
      onHead: (came) => head.resolve({ ...came, pieces: pieces() }),
      onData(chunk) {
        arrived.push(chunk)
        exchange.pause()
        wake()
      },
      onEnd: () => finish('ended'),
      onError: finish,
    },
  )
  const stop = (why: string): void => {
    exchange.cancel()
    finish(new TransportError(why, false))
  }
  const timer = setTimeout(() => stop(`no answer within ${timeoutMs / 1000} s`), timeoutMs)
  onUnwanted?.(() => end === 'open' && stop('cancelled'))
  return head.promise

  async function* pieces(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        const next = arrived.shift()
        if (next) yield next
        else if (end instanceof TransportError) throw end
        else if (end === 'ended') return
        else {
          const woken = new Promise<void>((resolve) => (wake = resolve))
          exchange.resume()
          await woken
        }
      }
    } finally {
      clearTimeout(timer)
      // An error may be about what came, so that the upstream still sends.
      if (end !== 'ended') exchange.cancel()
    }
  }
}

/** An upstream's complete response, with any status code, or the reason why there is none. */
export type WholeResponseOrFailure =
  | {
      readonly status: number
      readonly contentType: string
      readonly retryAfter: string | undefined
      readonly body: Buffer
    }
  /** Why there is no response: the operating system's error code, or one of a few fixed phrases. */
  | { readonly failure: string }

/**
 * Sends a request and reads the complete response: at most `maxBytes`, within `timeoutMs` milliseconds. A
 * failure of the upstream is returned as `failure`; the promise does not reject.
 */
export async function requestWholeResponse(
  upstreams: UpstreamClient,
  to: RequestRecipient,
  request: WireRequest,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
): Promise<WholeResponseOrFailure> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    const { status, contentType, retryAfter, pieces } = await requestStreamedResponse(
      upstreams,
      to,
      request,
      timeoutMs,
    )
    for await (const piece of pieces) {
      chunks.push(piece)
      length += piece.length
      if (length > maxBytes) break
    }
    return { status, contentType, retryAfter, body: Buffer.concat(chunks) }
  } catch (error) {
    if (error instanceof TransportError) return { failure: error.message }
    throw error
  }
}
