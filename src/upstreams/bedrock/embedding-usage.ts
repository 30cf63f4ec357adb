import type { TransportError, UpstreamResponseHead, UpstreamResponseListener } from '../upstream-request.ts'

const OPENING = 0x7b

/**
 * Puts the tokens that a header tells into the body of an answer with vectors, as Cohere's own API has them:
 * its models state none in the body here.
 */
export class EmbeddingUsage implements UpstreamResponseListener {
  readonly #listener: UpstreamResponseListener
  /** Tokens to be told with the first bytes; undefined where there are none, or they are told. */
  #tokens: number | undefined

  constructor(listener: UpstreamResponseListener) {
    this.#listener = listener
  }

  onHead(head: UpstreamResponseHead): void {
    this.#tokens = head.status === 200 ? head.inputTokens : undefined
    this.#listener.onHead(head)
  }

  onData(chunk: Buffer): void {
    const tokens = this.#tokens
    this.#tokens = undefined
    if (tokens === undefined || chunk[0] !== OPENING) return this.#listener.onData(chunk)
    this.#listener.onData(Buffer.from(`{"meta":{"billed_units":{"input_tokens":${tokens}}},`))
    this.#listener.onData(chunk.subarray(1))
  }

  onEnd(): void {
    this.#listener.onEnd()
  }

  onError(error: TransportError): void {
    this.#listener.onError(error)
  }
}
