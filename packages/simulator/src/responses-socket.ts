import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket, WebSocketServer } from 'ws'
import { type Fields, asFields, asString } from './fields.ts'
import { type Pace, paced } from './pace.ts'
import { Refusal, REFUSAL_STATUS } from './refusal.ts'
import { ResponseHistory } from './response-history.ts'
import { inputItems } from './responses-request.ts'
import type { Call, Frame, Upstream } from './upstream.ts'

const MAX_FRAME_BYTES = 64 * 1024 * 1024

/** Makes the stream that answers a call. Throws `Refusal`. */
export type StreamFrames = (call: Call) => readonly Frame[]

/** Serves the Responses API over WebSockets on a server that serves it by HTTP. */
export function serveResponsesSockets(
  server: Server,
  upstream: Upstream,
  stream: StreamFrames,
  pace: Pace,
): void {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    closeTimeout: 1_000,
    handleProtocols: () => false,
  })
  server.on('upgrade', (request: IncomingMessage, connection: Duplex, head: Buffer) => {
    const account = upstream.keyOf(request.headers)
    if (account === '' || new URL(request.url ?? '', 'http://localhost').pathname !== '/v1/responses') {
      connection.end(
        `HTTP/1.1 ${account === '' ? '401 Unauthorized' : '404 Not Found'}\r\nconnection: close\r\n\r\n`,
      )
      return
    }
    const call = {
      method: 'POST',
      path: '/responses',
      query: new URLSearchParams(),
      headers: request.headers,
      account,
    }
    const asked = { method: 'GET', headers: request.headers, id: '' }
    sockets.handleUpgrade(
      asked,
      connection,
      head,
      (socket) => new ResponsesSocket(socket, call, upstream, stream, pace),
    )
  })
}

/** A response that is being sent, and the items by which it is steered. */
interface Running {
  readonly body: Fields
  readonly id: string
  readonly steers: Fields[]
}

/** One socket. Its turns run one after the other, and continue each other whether they are stored or not. */
class ResponsesSocket {
  readonly #socket: WebSocket
  readonly #call: Omit<Call, 'body'>
  readonly #upstream: Upstream
  readonly #stream: StreamFrames
  readonly #pace: Pace
  readonly #history = new ResponseHistory()
  #running: Running | undefined
  #turns = Promise.resolve()

  constructor(
    socket: WebSocket,
    call: Omit<Call, 'body'>,
    upstream: Upstream,
    stream: StreamFrames,
    pace: Pace,
  ) {
    this.#socket = socket
    this.#call = call
    this.#upstream = upstream
    this.#stream = stream
    this.#pace = pace
    socket.on('error', () => {})
    socket.on('message', (message: Buffer) => this.#receive(message))
  }

  #receive(message: Buffer): void {
    let frame: Fields
    try {
      frame = asFields(JSON.parse(message.toString()))
    } catch {
      this.#refuse(new Refusal('malformed', 'A message is not JSON'))
      return
    }
    const { type, ...body } = frame
    if (type === 'response.create')
      this.#turns = this.#turns.then(() => this.#turn({ ...body, stream: true }))
    else if (type === 'response.steer') this.#steer(body)
    else this.#refuse(new Refusal('malformed', 'type: response.create or response.steer is expected'))
  }

  async #turn(body: Fields): Promise<void> {
    try {
      await this.#send(body, this.#stream({ ...this.#call, body, history: this.#history }))
    } catch (error) {
      if (error instanceof Refusal) this.#refuse(error)
      else this.#socket.terminate()
    }
  }

  async #send(body: Fields, frames: readonly Frame[]): Promise<void> {
    const events = frames.map(({ text }) => eventIn(text)).filter((event) => event !== undefined)
    const running: Running = { body, id: asString(asFields(events[0]?.response).id), steers: [] }
    this.#running = running
    await sleep(this.#pace.firstTokenMs)
    for (const text of paced(frames)) {
      if (running.steers.length > 0) break
      if (text === undefined) await sleep(this.#pace.tokenMs)
      else for (const one of text.split('\n\n')) this.#event(eventIn(one))
    }
    this.#running = undefined
    if (running.steers.length === 0) return
    const last = asFields(events.at(-1)?.response)
    const details: Fields = { status: 'incomplete', incomplete_details: { reason: 'steered' }, output: [] }
    this.#event({
      type: 'response.incomplete',
      sequence_number: events.length,
      response: { ...last, ...details },
    })
    const input = [...inputItems(body.input), ...running.steers]
    await this.#turn({ ...body, input })
  }

  #steer({ previous_response_id: id, input }: Fields): void {
    const running = this.#running
    if (!running || running.id !== id) {
      const error = { code: 'response_not_active', message: 'No response with this id is running' }
      this.#event({ type: 'response.steer.failed', previous_response_id: id, error, input })
      return
    }
    running.steers.push(...inputItems(input))
    this.#event({ type: 'response.steer.accepted', previous_response_id: id })
  }

  #refuse(refusal: Refusal): void {
    const { error } = asFields(this.#upstream.refuse(refusal, { created: 0, id: (prefix) => prefix }))
    this.#event({ type: 'error', status: REFUSAL_STATUS[refusal.kind], error })
  }

  #event(event: Fields | undefined): void {
    if (event && this.#socket.readyState === WebSocket.OPEN)
      this.#socket.send(JSON.stringify(event), { binary: false })
  }
}

function eventIn(frame: string): Fields | undefined {
  const data = /^data: (.*)$/m.exec(frame)?.[1]
  return data === undefined ? undefined : asFields(JSON.parse(data))
}
