import { TransportError } from '@sluice/http1'
import { exchangePieces, type Recipient } from './exchange-pieces.ts'
import type { WireRequest } from './provider.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** Whole response of an upstream, of any status, or the reason why there is none. */
export type WholeExchange =
  | {
      readonly status: number
      readonly contentType: string
      readonly retryAfter: string | undefined
      readonly body: Buffer
    }
  /** The system's error code, or a fixed phrase. */
  | { readonly failure: string }

/**
 * Sends one request and reads its whole response: at most `maxBytes` of it, within `timeoutMs`. Never rejects
 * because of an upstream.
 */
export async function exchangeWhole(
  upstreams: UpstreamClient,
  to: Recipient,
  request: WireRequest,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
): Promise<WholeExchange> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    const { status, contentType, retryAfter, pieces } = await exchangePieces(
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
