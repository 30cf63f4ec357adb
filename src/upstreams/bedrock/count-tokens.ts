import { parseRecord } from '../../protocols/json/record.ts'
import type { TransportError, UpstreamResponseHead, UpstreamResponseListener } from '../upstream-request.ts'

/** Bytes of a response that are read: more is no count. */
const MAX_BYTES = 64 * 1024

/** A body of `invoke` as `count-tokens` takes it. */
export function countBody(invoked: Buffer): Buffer {
  return Buffer.from(JSON.stringify({ input: { invokeModel: { body: invoked.toString('base64') } } }))
}

/** Turns the response of `count-tokens` into that of the messages protocol. */
export class BedrockCount implements UpstreamResponseListener {
  readonly #listener: UpstreamResponseListener
  #chunks: Buffer[] = []
  #length = 0

  constructor(listener: UpstreamResponseListener) {
    this.#listener = listener
  }

  onHead(head: UpstreamResponseHead): void {
    this.#listener.onHead(head)
  }

  onData(chunk: Buffer): void {
    if (this.#length < MAX_BYTES) this.#chunks.push(chunk)
    this.#length += chunk.length
  }

  onEnd(): void {
    const bytes = Buffer.concat(this.#chunks)
    const tokens = parseRecord(bytes.toString())?.['inputTokens']
    this.#listener.onData(
      typeof tokens === 'number' ? Buffer.from(JSON.stringify({ input_tokens: tokens })) : bytes,
    )
    this.#listener.onEnd()
  }

  onError(error: TransportError): void {
    this.#listener.onError(error)
  }
}
