import {
  TransportError,
  type UpstreamRequest,
  type UpstreamResponseHead,
  type UpstreamResponseListener,
} from '@sluice/http1'
import {
  type AnswerListener,
  type AnswerMemory,
  type Provider,
  ProviderRefusal,
  type ProviderTarget,
  type WireRequest,
} from './provider.ts'

/** A function that sends a request in the form that the provider expects. */
export type SendRequest = (request: WireRequest, listener: UpstreamResponseListener) => UpstreamRequest

/**
 * Sends a request in the form that the provider expects. It may take a while to make that form, for example
 * to get an access token. After a 401 response, the request is sent once more if the provider considers that
 * useful.
 */
export class ProviderExchange implements UpstreamRequest, UpstreamResponseListener {
  readonly #provider: Provider
  readonly #request: WireRequest
  readonly #target: Omit<ProviderTarget, 'now'>
  readonly #send: SendRequest
  readonly #listener: UpstreamResponseListener
  readonly #memory: AnswerMemory | undefined
  #made: WireRequest | undefined
  #sent: UpstreamRequest | undefined
  #isPaused = false
  #isShort = false
  #isOver = false
  #isRenewed = false

  constructor(
    provider: Provider,
    request: WireRequest,
    target: Omit<ProviderTarget, 'now'>,
    listener: AnswerListener,
    send: SendRequest,
  ) {
    this.#provider = provider
    this.#request = request
    this.#target = target
    this.#send = send
    this.#memory = provider.responses && listener.newMemory?.()
    this.#listener = provider.responses?.(request, listener, this.#memory) ?? listener
    this.#begin()
  }

  get isSent(): boolean {
    return this.#sent?.isSent ?? false
  }

  get connectDurationMs(): number {
    return this.#sent?.connectDurationMs ?? 0
  }

  get isShort(): boolean {
    return this.#isShort || this.#sent?.isShort === true
  }

  pause(): void {
    this.#isPaused = true
    this.#sent?.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isShort) this.#sent?.resume()
  }

  cancel(): void {
    this.#isOver = true
    this.#sent?.cancel()
    this.#memory?.resize(0)
  }

  onHead(head: UpstreamResponseHead): void {
    if (head.status !== 401 || !this.#mayRenew()) return this.#listener.onHead(head)
    this.#isRenewed = true
    this.#sent?.cancel()
    this.#begin()
  }

  onData(chunk: Buffer): void {
    this.#listener.onData(chunk)
    if (this.#memory?.isShort && !this.#isShort) void this.#waitForMemory(this.#memory)
  }

  onEnd(): void {
    this.#listener.onEnd()
  }

  onError(error: TransportError): void {
    this.#listener.onError(error)
  }

  // Beside the caller's own pauses, which may begin and end meanwhile.
  async #waitForMemory(memory: AnswerMemory): Promise<void> {
    this.#isShort = true
    this.#sent?.pause()
    await memory.whenEnough()
    this.#isShort = false
    if (!this.#isPaused) this.#sent?.resume()
  }

  #mayRenew(): boolean {
    if (this.#isRenewed || !this.#made) return false
    return this.#provider.renew?.(this.#target, this.#made) ?? false
  }

  #begin(): void {
    this.#sent = undefined
    // The request begins later, because the caller must have this object before its listener is called.
    Promise.resolve()
      .then(() => this.#provider.request(this.#request, { ...this.#target, now: new Date() }))
      .then((made) => this.#onMade(made))
      .catch((error: unknown) => this.#refuse(error))
  }

  #onMade(made: WireRequest): void {
    if (this.#isOver) return
    this.#made = made
    this.#sent = this.#send(made, this)
    if (this.#isPaused) this.#sent.pause()
  }

  #refuse(error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    if (error instanceof ProviderRefusal && error.isOfKey) return this.#refuseKey(error.message)
    const detail = error instanceof ProviderRefusal ? error.message : undefined
    this.#listener.onError(new TransportError('the request could not be made', false, detail))
  }

  // Passes a 401 response with this message to the listener, so that the channel's next key is tried.
  #refuseKey(message: string): void {
    this.#listener.onHead({
      status: 401,
      contentType: 'application/json',
      retryAfter: undefined,
      headers: {},
    })
    this.#listener.onData(Buffer.from(JSON.stringify({ message })))
    this.#listener.onEnd()
  }
}
