import type { UpstreamRequest } from '@sluice/http1'

/** Controls the flow of an upstream's response to one call. Has no effect until the request is being sent. */
export class UpstreamFlow {
  #request: UpstreamRequest | undefined
  #isSilent = false
  #send: ((body: Buffer) => void) | undefined

  /** Whether the request is being sent, so that the upstream may already be working on it. */
  get isSent(): boolean {
    return this.#request?.isSent === true
  }

  /** Whether the response is read no further, or was before its end, because there is no memory for it. */
  get isShort(): boolean {
    return this.#request?.isShort === true
  }

  /** Whether nothing more will arrive, because the response has ended or was cancelled. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Sets the request whose response is controlled. `send` sends the same request with another body. */
  start(request: UpstreamRequest, send: (body: Buffer) => void): void {
    this.#request = request
    this.#send = send
    this.#isSilent = false
  }

  /** Sends the same request with the next body, after a response has ended. */
  goOn(body: Buffer): void {
    this.#send?.(body)
  }

  /** Records that the upstream's response has ended. */
  noteSilence(): void {
    this.#isSilent = true
  }

  pause(): void {
    this.#request?.pause()
  }

  resume(): void {
    this.#request?.resume()
  }

  /** Cancels the request; nothing is received afterwards. */
  cancel(): void {
    this.#isSilent = true
    this.#request?.cancel()
  }
}
