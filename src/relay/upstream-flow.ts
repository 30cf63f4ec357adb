import type { UpstreamRequest } from '../upstreams/upstream-request.ts'

/** Flow control of one upstream response; without effect until the request is on its way. */
export class UpstreamFlow {
  #request: UpstreamRequest | undefined
  #isSilent = false

  /** Whether the upstream may be at work: the request is being sent. */
  get isSent(): boolean {
    return this.#request?.isSent === true
  }

  /** Nothing more will come from the upstream. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Takes the request, as soon as there is one. */
  start(request: UpstreamRequest): void {
    this.#request = request
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
