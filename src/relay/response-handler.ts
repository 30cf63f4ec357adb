import type { Call, Target } from './call.ts'
import type { Failure } from './failure.ts'
import type { UpstreamFlow } from './upstream-flow.ts'

/** How an attempt ended: the call is settled, or nothing was delivered and it may go elsewhere. */
export type AttemptEnd = Failure | 'settled'

/**
 * State of a response: nothing of it is sent (waiting); its head is sent (open); its client left, and the
 * rest is read for the charge (draining); nothing is left to do (over).
 */
type ResponseState = 'waiting' | 'open' | 'draining' | 'over'

/** Takes in an upstream's response for a client. Ends its attempt exactly once. */
export abstract class ResponseHandler {
  /** Resolves once, with how the attempt ended; rejects where the call could not be settled. */
  readonly end: Promise<AttemptEnd>
  protected readonly call: Call
  protected readonly target: Target
  protected readonly upstream: UpstreamFlow
  protected contentType = ''
  protected state: ResponseState = 'waiting'
  readonly #resolve: (end: AttemptEnd) => void
  readonly #reject: (error: unknown) => void
  #finishedAt = 0

  constructor(call: Call, target: Target, upstream: UpstreamFlow) {
    this.call = call
    this.target = target
    this.upstream = upstream
    const { promise, resolve, reject } = Promise.withResolvers<AttemptEnd>()
    this.end = promise
    this.#resolve = resolve
    this.#reject = reject
  }

  /** The moment, by `performance.now()`, at which the attempt ended; 0 before. */
  get finishedAt(): number {
    return this.#finishedAt
  }

  /** Whether a response of this type is one that was asked for. */
  accepts(contentType: string): boolean {
    const isEvents = /^text\/event-stream\b/i.test(contentType)
    return isEvents === this.call.request.stream && !/^text\/html\b/i.test(contentType)
  }

  /** The upstream succeeds; the client may be told this content type. */
  onSuccess(contentType: string): void {
    this.contentType = contentType
  }

  abstract onData(chunk: Buffer): void

  /** The upstream's response is complete. */
  abstract onEnd(): void

  /** No more will come that could be used. */
  abstract onFailure(failure: Failure): void

  /** Called once a second. */
  onTick(_nowMs: number): void {}

  /** The client left; `isReached`: the upstream may be at work for it. */
  onClientLeft(isReached: boolean): void {
    if (this.state === 'over' || this.state === 'draining') return
    if (isReached && this.target.channel.onClientGone === 'drain' && this.call.drains.begin()) {
      this.state = 'draining'
      this.onDraining()
      return
    }
    this.upstream.cancel()
    if (isReached) {
      this.settleWithoutClient()
      return
    }
    this.close()
    this.call.settleForNothing(this.target)
    this.settled(Promise.resolve())
  }

  /** Ends the attempt by a mistake of the gateway's own; without this its trial would stay open. */
  crash(error: unknown): void {
    this.upstream.cancel()
    this.#finish()
    this.#reject(error)
    if (this.state !== 'over') this.close()
  }

  /** Called when the client has left and the rest is read. */
  protected onDraining(): void {}

  /** Charges what is known of the response; its client has left. */
  protected abstract settleWithoutClient(): void

  /** Ends the work on this response, and gives back what it shares with other calls. */
  protected close(): void {
    if (this.state === 'draining') this.call.drains.end()
    this.state = 'over'
  }

  /** Ends the attempt: nothing was delivered. */
  protected undelivered(failure: Failure): void {
    this.#finish()
    this.#resolve(failure)
  }

  /** Ends the attempt when `work`, which settles the call, is done. */
  protected settled(work: Promise<unknown>): void {
    work.then(() => this.#resolve('settled'), this.#reject).finally(() => this.#finish())
  }

  #finish(): void {
    this.#finishedAt = performance.now()
  }
}
