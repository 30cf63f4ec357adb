import type { UpstreamRequest } from '@sluice/http1'

/** Flow control of one upstream response; without effect until the request is on its way. */
export class UpstreamFlow {
  #request: UpstreamRequest | undefined
  #isSilent = false
  #send: ((body: Buffer) => void) | undefined

  /** Whether the upstream may be at work: the request is being sent. */
  get isSent(): boolean {
    return this.#request?.isSent === true
  }

  /** Nothing more will come from the upstream. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Takes the request, as soon as there is one; `send` sends the same request with another body. */
  start(request: UpstreamRequest, send: (body: Buffer) => void): void {
    this.#request = request
    this.#send = send
    this.#isSilent = false
  }

  /** Asks for more, once a response is over. */
  goOn(body: Buffer): void {
    this.#send?.(body)
  }

  /** Notes that the upstream's response is over. */
  noteSilence(): void {
    this.#isSilent = true
  }

  pause(): void {
    this.#request?.pause()
  }

  resume(): void {
    this.#request?.resume()
  }

  /** Gives up the request; nothing is received afterwards. */
  cancel(): void {
    this.#isSilent = true
    this.#request?.cancel()
  }
}
