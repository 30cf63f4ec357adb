import type { AttemptTarget } from '../../call/request-stages.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import type { RunningCall } from '../../call/running-call.ts'
import { answerHeaders } from '../../http/answer-headers.ts'
import { CODES, type Fields, isLogged } from './protocol.ts'
import type { AnswerSink, ClientAnswer } from './server-call.ts'

/** Sends an answer that is not a stream. `hold`: allocates memory for it. */
export function sendMessage(
  { id, response }: IncomingCall,
  status: number,
  message: Fields,
  headers: Readonly<Record<string, string>> = {},
  hold: (bytes: number) => void = () => {},
): void {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
  hold(body.length)
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'content-length': String(body.length),
      'cache-control': 'no-store',
      ...answerHeaders(id, undefined),
      ...headers,
    })
    .end(body)
}

/** Errors of the protocol that have an HTTP status in 2026-07-28. */
const STATUSES: ReadonlyMap<number, number> = new Map([
  [CODES.header, 400],
  [CODES.capability, 400],
  [CODES.version, 400],
])

/** The answer to one request: JSON, or a stream of events as soon as there is a notification. */
export class ClientAnswerStream implements AnswerSink {
  readonly #incoming: IncomingCall
  readonly #id: string | number
  readonly #progressToken: unknown
  readonly #logLevel: unknown
  readonly #isStateless: boolean
  #hasBegun = false
  /** Whether the client has to read before it gets further notifications. */
  #isFull = false

  constructor(
    incoming: IncomingCall,
    id: string | number,
    client: { readonly progressToken: unknown; readonly logLevel: unknown; readonly isStateless: boolean },
  ) {
    this.#incoming = incoming
    this.#id = id
    this.#progressToken = client.progressToken
    this.#logLevel = client.logLevel
    this.#isStateless = client.isStateless
  }

  wants(method: string, { level }: Fields): boolean {
    if (method === 'notifications/progress') return this.#progressToken !== undefined
    return isLogged(level, this.#logLevel)
  }

  notify(call: RunningCall, method: string, given: Fields): void {
    const { response } = this.#incoming
    if (response.isAborted || response.hasEnded || this.#isFull) return
    const progressToken = this.#progressToken
    const params = method === 'notifications/progress' ? { ...given, progressToken } : given
    if (!this.#hasBegun) {
      this.#hasBegun = true
      response.writeHead(200, {
        ...call.headers('text/event-stream', undefined),
        'x-accel-buffering': 'no',
      })
      // Closing the stream cancels the request.
      response.lastsUntilClientLeaves()
    }
    if (response.write(eventOf({ method, params }))) return
    this.#isFull = true
    response.whenDrained(() => (this.#isFull = false))
  }

  finish(call: RunningCall, target: AttemptTarget, { result, error }: ClientAnswer): void {
    const { response } = this.#incoming
    if (response.isAborted || response.hasEnded) return
    const message = { id: this.#id, ...(error ? { error } : { result }) }
    if (this.#hasBegun) {
      response.end(eventOf(message))
      return
    }
    const status = (this.#isStateless && error && STATUSES.get(error.code)) || 200
    const { 'content-type': _, ...headers } = call.headers('application/json', target)
    sendMessage(this.#incoming, status, message, headers)
  }

  /** Ends the answer to a request that the client has cancelled. */
  cancelled(): void {
    const { id, response } = this.#incoming
    if (response.isAborted || response.hasEnded) return
    if (!this.#hasBegun)
      response.writeHead(200, { 'content-type': 'text/event-stream', ...answerHeaders(id, undefined) })
    response.end()
  }

  /** Whether the head of the answer was sent, so that an error can only be an event. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Ends a stream with an error of the gateway. */
  fail(code: number, message: string): void {
    this.#incoming.response.end(eventOf({ id: this.#id, error: { code, message } }))
  }
}

function eventOf(message: Fields): Buffer {
  return Buffer.from(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
}
