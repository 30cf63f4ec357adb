import type { IncomingHttpHeaders } from 'node:http'
import { Agent, type Dispatcher } from 'undici'
import type { Channel } from '../domain/channel.ts'
import type { Hold } from '../domain/hold.ts'
import { credentials } from './credentials.ts'
import type { UpstreamKey } from './key-ring.ts'
import { MARK_HEADER } from './own-request.ts'

/** Hears what an upstream answers. Exactly one of `ended` and `failed` comes last; neither after `cancel`. */
export interface Answer {
  started(status: number, headers: IncomingHttpHeaders): void
  received(chunk: Buffer): void
  ended(): void
  failed(error: Error): void
}

/** A call under way. */
export interface Exchange {
  /** A connection was found, and the request is being sent: the upstream may be at work. */
  readonly begun: boolean
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
  /** Gives the call up and closes its connection; nothing is heard of it afterwards. */
  cancel(): void
}

/** Where calls of a channel go, and the headers that all of them carry, names and values in turn. */
interface Address {
  readonly origin: string
  readonly basePath: string
  readonly headers: readonly string[]
}

/** The one HTTP client for model upstreams. A call needs a hold: nothing goes upstream that nobody pays for. */
export class Upstreams {
  // One pool of connections for each connect timeout that channels ask for.
  readonly #agents = new Map<number, Agent>()
  // What is the same for each call of a channel with a key.
  readonly #addresses = new WeakMap<Channel, Map<string, Address>>()
  readonly #mark: string

  /** `mark` goes out with every request, so that one that comes back to us is known. */
  constructor(mark: string) {
    this.#mark = mark
  }

  /** Posts `body` to `path` below the channel's base URL; `headers` are names and values in turn. */
  post(
    hold: Hold,
    channel: Channel,
    key: UpstreamKey,
    path: string,
    headers: readonly string[],
    body: Buffer,
    answer: Answer,
  ): Exchange {
    if (hold.isSettled) throw new Error(`hold ${hold.facts.id} is settled: nothing may be sent for it`)
    const address = this.#address(channel, key)
    const exchange = new UndiciExchange(answer)
    this.#agent(channel.timeouts.connectMs).dispatch(
      {
        origin: address.origin,
        path: address.basePath + path,
        method: 'POST',
        headers: [...address.headers, ...headers],
        body,
        headersTimeout: channel.timeouts.firstByteMs,
        bodyTimeout: channel.timeouts.idleMs,
      },
      exchange,
    )
    return exchange
  }

  #address(channel: Channel, key: UpstreamKey): Address {
    let addresses = this.#addresses.get(channel)
    if (!addresses) this.#addresses.set(channel, (addresses = new Map()))
    let address = addresses.get(key.value)
    if (!address) addresses.set(key.value, (address = addressOf(channel, key, this.#mark)))
    return address
  }

  #agent(connectMs: number): Agent {
    let agent = this.#agents.get(connectMs)
    if (!agent) {
      agent = new Agent({
        allowH2: false,
        connect: { timeout: connectMs },
        maxHeaderSize: 16_384,
        keepAliveTimeout: 10_000,
      })
      this.#agents.set(connectMs, agent)
    }
    return agent
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()))
  }
}

function addressOf(channel: Channel, key: UpstreamKey, mark: string): Address {
  const { origin, pathname } = new URL(channel.baseUrl)
  const headers = ['content-type', 'application/json', 'accept-encoding', 'identity', MARK_HEADER, mark]
  headers.push(...credentials(channel.protocol, key.value))
  for (const [name, value] of channel.headers) headers.push(name, value)
  return { origin, basePath: pathname === '/' ? '' : pathname, headers }
}

class UndiciExchange implements Exchange, Dispatcher.DispatchHandler {
  readonly #answer: Answer
  #controller: Dispatcher.DispatchController | undefined
  #cancelled = false

  constructor(answer: Answer) {
    this.#answer = answer
  }

  get begun(): boolean {
    return this.#controller !== undefined
  }

  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  cancel(): void {
    if (this.#cancelled) return
    this.#cancelled = true
    this.#controller?.abort(new Error('cancelled'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#cancelled) controller.abort(new Error('cancelled'))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (!this.#cancelled && status >= 200) this.#answer.started(status, headers)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#cancelled) this.#answer.received(chunk)
  }

  onResponseEnd(): void {
    if (!this.#cancelled) this.#answer.ended()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (!this.#cancelled) this.#answer.failed(error)
  }
}
