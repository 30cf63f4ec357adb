import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import { WebSocket } from 'ws'
import type { Channel } from '../../domain/records/channel.ts'
import type { ResponseMemory } from '../../limits/request-memory.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { UpstreamWay } from '../../upstreams/provider.ts'
import { MessageMeter, MIN_READ_BYTES } from './message-meter.ts'

/** Maximum bytes of the answer to an upgrade that are read. */
const MAX_REFUSAL_BYTES = 65_536
/** Headers of requests by HTTP that an upgrade does not have. */
const NOT_OF_UPGRADES: ReadonlySet<string> = new Set(['accept', 'content-type'])

/** Receives what comes over a provider's socket. */
export interface ProviderListener {
  onMessage(message: Buffer): void
  /** Called with true when nothing is read any more because memory is short, and with false when reading goes on. */
  onShort(isShort: boolean): void
  /** Called once, if the socket breaks. */
  onBreak(cause: string): void
}

/** What became of an upgrade. */
export type Upgraded =
  | { readonly socket: ProviderSocket; readonly connectMs: number }
  /** The provider has answered with another status, or not as the protocol demands. */
  | { readonly refusal: UpgradeRefusal | undefined }
  | { readonly unreachable: string }

/** The answer of a provider that does not upgrade. */
export interface UpgradeRefusal {
  readonly status: number
  readonly contentType: string
  readonly retryAfter: string | undefined
  readonly body: Buffer
}

/** A WebSocket to a provider: for one lane of a client's socket, one channel and one key. */
export class ProviderSocket {
  readonly #socket: WebSocket
  #channel: Channel
  readonly #key: UpstreamKey
  readonly #memory: ResponseMemory
  readonly #meter = new MessageMeter()
  #listener: ProviderListener | undefined
  /** Whether the listener has paused the socket. */
  #isPaused = false
  /** Whether an unfinished message waits for memory. */
  #isShort = false
  #isBroken = false
  /** The last answer, if it can be continued: the provider's id of it, and the client's once it is known. */
  last: { readonly id: string; readonly shownId: string | undefined } | undefined

  constructor(socket: WebSocket, raw: Socket, { channel, key }: UpstreamWay, memory: ResponseMemory) {
    this.#socket = socket
    this.#channel = channel
    this.#key = key
    this.#memory = memory
    raw.on('data', (bytes) => this.#count(bytes))
    socket.on('message', (message: Buffer, isBinary: boolean) => {
      // A message that no turn waits for would be taken for the answer to the next one.
      if (isBinary || !this.#listener) this.close()
      else this.#listener.onMessage(message)
    })
    socket.on('close', () => this.#break('connection closed'))
  }

  /** Whether a request to this channel with this key can be sent. */
  serves({ channel, key }: UpstreamWay): boolean {
    return !this.#isBroken && this.isOf(channel, key)
  }

  isOf(channel: Channel, key: UpstreamKey | undefined): boolean {
    if (channel !== this.#channel) {
      // Each change of a setting makes all channels anew.
      if (channel.name !== this.#channel.name || !isDeepStrictEqual(channel, this.#channel)) return false
      this.#channel = channel
    }
    return key === undefined || this.#key.value === key.value
  }

  send(message: Buffer): void {
    this.#socket.send(message, { binary: false })
  }

  /** Gives what comes from now on to a listener; without one, nothing more is expected from the provider. */
  listen(listener: ProviderListener | undefined): void {
    this.#listener = listener
    this.resume()
  }

  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isShort) this.#socket.resume()
  }

  close(): void {
    this.#socket.terminate()
    this.#break('connection closed')
  }

  #count(bytes: Buffer): void {
    if (this.#isBroken) return
    this.#meter.count(bytes)
    this.#memory.resize(this.#meter.heldBytes)
    if (this.#memory.isShort && !this.#isShort) void this.#awaitMemory()
  }

  async #awaitMemory(): Promise<void> {
    this.#isShort = true
    this.#socket.pause()
    this.#listener?.onShort(true)
    await this.#memory.whenEnough()
    this.#isShort = false
    if (!this.#isPaused) this.#socket.resume()
    this.#listener?.onShort(false)
  }

  #break(cause: string): void {
    if (this.#isBroken) return
    this.#isBroken = true
    this.#memory.resize(0)
    const listener = this.#listener
    this.#listener = undefined
    listener?.onBreak(cause)
  }
}

/** Opens a WebSocket to a provider. */
export async function openProviderSocket(way: UpstreamWay, memory: ResponseMemory): Promise<Upgraded> {
  const { url, headers } = await way.head()
  const begunAt = performance.now()
  let raw: Socket
  try {
    raw = await way.dial()
  } catch (error) {
    return { unreachable: (error as NodeJS.ErrnoException).code ?? (error as Error).message }
  }
  const connectMs = Math.ceil(performance.now() - begunAt)
  const { promise, resolve } = Promise.withResolvers<Upgraded>()
  const socket = new WebSocket(url, [], {
    headers: ofUpgrade(headers),
    perMessageDeflate: false,
    maxPayload: MAX_EVENT_BYTES,
    maxBufferedChunks: MAX_EVENT_BYTES / MIN_READ_BYTES,
    handshakeTimeout: way.channel.timeouts.first_byte,
    createConnection: () => raw,
  })
  // The event 'close' follows.
  socket.on('error', () => resolve({ refusal: undefined }))
  socket.on('unexpected-response', (_: unknown, response: IncomingMessage) => {
    void readRefusal(response).then((refusal) => {
      raw.destroy()
      resolve({ refusal })
    })
  })
  socket.on('open', () => resolve({ socket: new ProviderSocket(socket, raw, way, memory), connectMs }))
  return promise
}

async function readRefusal(response: IncomingMessage): Promise<UpgradeRefusal> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      pieces.push(piece)
      bytes += piece.length
      if (bytes >= MAX_REFUSAL_BYTES) break
    }
  } catch {
    // What has arrived says enough.
  }
  return {
    status: response.statusCode ?? 0,
    contentType: response.headers['content-type'] ?? '',
    retryAfter: response.headers['retry-after'],
    body: Buffer.concat(pieces).subarray(0, MAX_REFUSAL_BYTES),
  }
}

function ofUpgrade(headers: readonly string[]): Record<string, string> {
  const result: Record<string, string> = {}
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    if (!NOT_OF_UPGRADES.has(name)) result[name] = headers[at + 1] as string
  }
  return result
}
