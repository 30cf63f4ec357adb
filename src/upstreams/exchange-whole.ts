import type { Channel } from '../domain/channel.ts'
import type { Hold } from '../domain/hold.ts'
import type { UpstreamKey } from './key-ring.ts'
import type { DialectRequest } from './provider.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** Whole response of an upstream, of any status; or why there is none. */
export type WholeExchange =
  | {
      readonly status: number
      readonly contentType: string
      readonly retryAfter: string | undefined
      readonly body: Buffer
    }
  /** System's error code, or a fixed phrase. */
  | { readonly failure: string }

/**
 * Sends one request and reads its whole response: at most `maxBytes` of it, within `timeoutMs`. Never rejects
 * for what an upstream does.
 */
export function exchangeWhole(
  upstreams: UpstreamClient,
  to: { readonly hold: Hold; readonly channel: Channel; readonly key: UpstreamKey },
  request: DialectRequest,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
): Promise<WholeExchange> {
  const { promise, resolve } = Promise.withResolvers<WholeExchange>()
  const chunks: Buffer[] = []
  let length = 0
  let head = { status: 0, contentType: '', retryAfter: undefined as string | undefined }
  const ended = (): void => resolve({ ...head, body: Buffer.concat(chunks) })
  const { body } = upstreams.adapt(to.channel, request)
  const exchange = upstreams.send(
    to.hold,
    to.channel,
    to.key,
    { ...request, body },
    {
      onHead: (came) => void (head = came),
      onData(chunk) {
        chunks.push(chunk)
        length += chunk.length
        if (length <= maxBytes) return
        exchange.cancel()
        ended()
      },
      onEnd: ended,
      onError: ({ message }) => resolve({ failure: message }),
    },
  )
  const timer = setTimeout(() => {
    exchange.cancel()
    resolve({ failure: `no answer within ${timeoutMs / 1000} s` })
  }, timeoutMs)
  return promise.finally(() => clearTimeout(timer))
}
