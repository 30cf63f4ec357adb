import type { UpgradedConnection } from '@sluice/http1'
import type { WebSocket, WebSocketServer } from 'ws'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { DenseSet } from '../../domain/dense-set.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { BodyReader } from '../../call/body-reader.ts'
import { headersOfParts } from '../../call/composed-request.ts'
import type { BodySource } from '../../call/slow-bodies.ts'
import type { Routes } from '../../call/routing.ts'
import type { IncomingCall, RenderedRefusal } from '../../call/incoming-call.ts'
import { type RequestMemory, ResizableAllocation, ResponseMemory } from '../../limits/request-memory.ts'
import type { ClientSocket } from './client-socket.ts'
import type { ServedTurn, Upgrade } from './socket-services.ts'
import { Conversations } from './conversations.ts'
import { MIN_READ_BYTES } from './message-meter.ts'
import type { ProviderLane } from './provider-lane.ts'
import type { ProviderSockets } from './provider-sockets.ts'
import { CHECKED } from './turn.ts'

const TICK_MS = 1_000
/** Milliseconds for which a socket that was closed waits for the client to close it too. */
const CLOSE_TIMEOUT_MS = 5_000
/** Number of reads up to which those of a message may be of any size. */
const MIN_READS = 16_384
/** The only version of the protocol (RFC 6455). */
const VERSION = '13'
/** A key is 16 bytes in base64 (RFC 6455, section 4.1). */
const KEY = /^[+/0-9A-Za-z]{22}==$/
/** Browsers can send an API key only as a subprotocol. It is not repeated in the answer. */
const KEY_PROTOCOL = /^openai-insecure-api-key\./

/** What sockets need of the gateway. */
export interface WebSocketServices {
  readonly settings: () => Settings
  readonly memory: RequestMemory
  readonly bodies: BodyReader
  /** Serves a turn like a request to `POST /v1/responses`. */
  readonly serveTurn: (turn: ServedTurn) => void
  readonly renderError: (error: unknown, id: string) => RenderedRefusal
  /** Counts a socket that was closed. */
  readonly onClosed: (code: number) => void
  readonly providers: ProviderSockets
  readonly nowMs: () => number
}

/** The library, which is loaded for the first socket: most gateways never have one. */
interface Library {
  readonly ws: typeof import('ws')
  readonly ClientSocket: typeof ClientSocket
  readonly ProviderLane: typeof ProviderLane
}

/** The WebSockets of clients: `docs/websocket.md`. */
export class WebSockets {
  readonly #services: WebSocketServices
  readonly #conversations: Conversations
  readonly #open = new DenseSet<ClientSocket>()
  #library: Promise<Library> | undefined
  #server: { readonly maxPayload: number; readonly server: WebSocketServer } | undefined
  #timer: NodeJS.Timeout | undefined
  #isDraining = false

  constructor(services: WebSocketServices) {
    this.#services = services
    this.#conversations = new Conversations(services.memory)
  }

  /** Number of open sockets. */
  get open(): number {
    return this.#open.size
  }

  /** Answers an upgrade of a caller who may call. Rejects with the error for a request that is none. */
  async upgrade({ id, request, response }: IncomingCall, caller: Caller, url: string): Promise<void> {
    const { headers } = request
    if (!request.asksUpgrade)
      throw new GatewayError('invalid_request', 'a WebSocket request has the header "connection: upgrade"')
    if (headers['sec-websocket-version'] !== VERSION)
      throw new GatewayError('invalid_request', `expected "sec-websocket-version: ${VERSION}"`, {
        headers: { 'sec-websocket-version': VERSION },
      })
    if (!KEY.test(headers['sec-websocket-key'] ?? ''))
      throw new GatewayError('invalid_request', 'expected 16 bytes in base64 in "sec-websocket-key"')
    this.#library ??= loadLibrary()
    const library = await this.#library
    const connection = response.upgrade()
    if (!connection)
      throw new GatewayError(
        'invalid_request',
        'a WebSocket request has no body, and its client waits for the 101',
      )
    const upgrade = { id, url, headers: headersOfParts(headers), remoteAddress: request.remoteAddress }
    const asked = { method: 'GET', headers: { ...headers, upgrade: 'websocket' }, id }
    this.#serverOf(library).handleUpgrade(asked, connection, Buffer.alloc(0), (socket) =>
      this.#begin(library, socket, connection, upgrade, caller),
    )
  }

  /** The status for a request that was only checked: whether the gateway or a provider answers it. */
  statusOfCheck(routes: Routes | undefined): number {
    const isThere = routes?.resolutions[0]?.channels.some((channel) =>
      this.#services.providers.reach(channel),
    )
    return isThere ? CHECKED.prepareThere : CHECKED.prepareHere
  }

  /** Ends all sockets, each once none of its turns is running. */
  drain(): void {
    this.#isDraining = true
    for (const socket of this.#open) socket.drain()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #serverOf({ ws }: Library): WebSocketServer {
    const maxPayload = this.#services.settings().options.body_limit
    if (this.#server?.maxPayload === maxPayload) return this.#server.server
    const server = new ws.WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload,
      maxBufferedChunks: Math.max(MIN_READS, maxPayload / MIN_READ_BYTES),
      closeTimeout: CLOSE_TIMEOUT_MS,
      handleProtocols: (offered) => [...offered].find((name) => !KEY_PROTOCOL.test(name)) ?? false,
    })
    server.on('headers', (lines: string[], { id }: { id: string }) => void lines.push(`x-request-id: ${id}`))
    this.#server = { maxPayload, server }
    return server
  }

  #begin(
    library: Library,
    socket: WebSocket,
    connection: UpgradedConnection,
    upgrade: Upgrade,
    { user, token }: Caller,
  ): void {
    const { settings, memory, bodies, serveTurn, renderError, onClosed, providers, nowMs } = this.#services
    const { body_limit: maxBytes, websocket: times } = settings().options
    const owner = { client: user.id, key: token.id }
    const answerMemory = (): ResponseMemory => new ResponseMemory(memory, owner)
    const source: BodySource = {
      get bytesRead() {
        return connection.bytesRead
      },
      get isPaused() {
        return connection.isPaused()
      },
    }
    const opened = new library.ClientSocket(socket, connection, upgrade, times, {
      serveTurn,
      renderError,
      arrival: (refuse) => bodies.arrival(source, owner, refuse),
      memory: new ResizableAllocation(memory, owner),
      answerMemory,
      conversations: this.#conversations.ofSocket(owner, maxBytes),
      providerLane: () => new library.ProviderLane(providers, answerMemory),
      nowMs,
      onClosed: (code) => {
        this.#open.delete(opened)
        onClosed(code)
        if (this.#open.size > 0) return
        clearInterval(this.#timer)
        this.#timer = undefined
      },
    })
    this.#open.add(opened)
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
    if (this.#isDraining) opened.drain()
  }

  #tick(): void {
    const nowMs = this.#services.nowMs()
    for (const socket of this.#open) socket.tick(nowMs)
  }
}

async function loadLibrary(): Promise<Library> {
  const [ws, { ClientSocket: socket }, { ProviderLane: lane }] = await Promise.all([
    import('ws'),
    import('./client-socket.ts'),
    import('./provider-lane.ts'),
  ])
  return { ws, ClientSocket: socket, ProviderLane: lane }
}
