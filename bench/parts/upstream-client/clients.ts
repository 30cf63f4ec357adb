import { sendAtTurnEnd, TransportError, type UpstreamResponseListener } from '@sluice/http1'
import { type Dispatcher, Pool } from 'undici'
import { channelOf } from '../../../test/samples/channel.ts'
import type { Hold } from '../../../src/domain/hold.ts'
import { Providers } from '../../../src/upstreams/providers.ts'
import { UpstreamClient } from '../../../src/upstreams/upstream-client.ts'
import { LOOP_MARK_HEADER } from '../../../src/upstreams/loop-detection.ts'

/** A client of the chat endpoint of one upstream. */
export interface MeasuredClient {
  post(body: Buffer, listener: UpstreamResponseListener): void
}

const KEY = 'upstream-key'
const MARK = 'mark'
const TIMEOUT_MS = 60_000
const HOLD: Hold = { id: '', isSettled: false }

/** The compared clients. Each gets the upstream's origin. */
export const CLIENTS = {
  ours: ourClient,
  undici: (origin) => undiciClient(origin, false),
  'undici, batched': (origin) => undiciClient(origin, true),
} as const satisfies Record<string, (origin: string) => MeasuredClient>

/** Name of a compared client. */
export type ClientName = keyof typeof CLIENTS

function ourClient(origin: string): MeasuredClient {
  const timeouts = { connect: TIMEOUT_MS, first_byte: TIMEOUT_MS, idle: TIMEOUT_MS, total: TIMEOUT_MS }
  const channel = channelOf({ base_url: `${origin}/v1`, keys: [KEY], timeouts })
  const channels = [channel]
  const client = new UpstreamClient(MARK, {
    channels: () => channels,
    providers: new Providers(() => Promise.reject(new Error('no tokens here'))),
    proxyOf: () => undefined,
    onUnsolicited: () => {},
  })
  const key = { value: KEY }
  return {
    post: (body, listener) =>
      void client.send(
        HOLD,
        channel,
        key,
        { protocol: 'chat', path: '/chat/completions', headers: [], body },
        listener,
      ),
  }
}

/**
 * Client on undici's dispatcher that sends the same headers. With `isBatched` it also does what our client
 * does: requests of one turn of the event loop are sent together at its end, and the chunks of one read are
 * delivered as one piece.
 */
function undiciClient(origin: string, isBatched: boolean): MeasuredClient {
  const pool = new Pool(origin, {
    connections: null,
    pipelining: 1,
    connectTimeout: TIMEOUT_MS,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  })
  const headers = ['content-type', 'application/json', 'accept-encoding', 'identity']
  headers.push(LOOP_MARK_HEADER, MARK, 'authorization', `Bearer ${KEY}`)
  const dispatch = (body: Buffer, handler: Dispatcher.DispatchHandler): void =>
    void pool.dispatch({ path: '/v1/chat/completions', method: 'POST', headers, body }, handler)
  return {
    post: isBatched
      ? (body, listener) => sendAtTurnEnd({ send: () => dispatch(body, new GatheringHandler(listener)) })
      : (body, listener) => dispatch(body, new Handler(listener)),
  }
}

/** Forwards a response to a listener. */
class Handler implements Dispatcher.DispatchHandler {
  protected readonly listener: UpstreamResponseListener

  constructor(listener: UpstreamResponseListener) {
    this.listener = listener
  }

  onRequestStart(): void {}

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    const retryAfter = headers['retry-after']
    this.listener.onHead({
      status,
      contentType: String(headers['content-type'] ?? ''),
      retryAfter: retryAfter === undefined ? undefined : String(retryAfter),
      headers: {},
    })
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.listener.onData(chunk)
  }

  onResponseEnd(): void {
    this.listener.onEnd()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.listener.onError(new TransportError(error.message, false))
  }
}

/** Forwards the chunks of one read as one piece. */
class GatheringHandler extends Handler {
  #chunks: Buffer[] = []

  override onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#chunks.length === 0) queueMicrotask(() => this.#flush())
    this.#chunks.push(chunk)
  }

  override onResponseEnd(): void {
    this.#flush()
    super.onResponseEnd()
  }

  #flush(): void {
    const [first] = this.#chunks
    if (!first) return
    this.listener.onData(this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks))
    this.#chunks = []
  }
}
