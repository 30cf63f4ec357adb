import { parseExact } from '@sluice/wire/json/exact-json'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import { FrameSplitter } from '@sluice/wire/sse/frame-splitter'
import type { Dispatcher } from 'undici'
import { FairSemaphore } from '../../limits/fair-semaphore.ts'
import { LOOP_MARK_HEADER } from '../../upstreams/loop-detection.ts'
import { NamedServerClient } from '../../upstreams/named-server-client.ts'
import { type Fields, isObject } from './protocol.ts'

/** Why a request to a server has failed. `docs/mcp.md: Servers that fail` */
export type FailureCode = 'server_unavailable' | 'server_auth' | 'server_timeout' | 'server_answer'

/** A server has failed. The reason is for operators; it has no words of the server. */
export class ServerFailure extends Error {
  readonly code: FailureCode

  constructor(code: FailureCode, reason: string, options?: ErrorOptions) {
    super(reason, options)
    this.name = 'ServerFailure'
    this.code = code
  }
}

/** Maximum levels of an answer's JSON. */
const MAX_LEVELS = 1_000
/** `maxMs` is more than the timeouts of servers may be. */
const LIMITS = { connections: 256, maxMs: 3_700_000 }
/** Requests of clients to one server at a time. The other connections are for short messages, such as those of sessions. */
const PLACES = { calls: 192, lists: 32 }
/** Part of the places of a server that one API key may have if no other key has called recently. */
const ALONE = 7 / 8

/** `signal`: that of the request. */
export type TakeMemory = (bytes: number, signal: AbortSignal) => void | Promise<void>

/** A message for a server. */
export interface ServerPost {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** Called when the message begins to be sent. */
  readonly onSent?: (() => void) | undefined
  /** Allocates memory for bytes that have arrived, before more are read. Throws or rejects if there is none. */
  readonly take?: TakeMemory | undefined
  /** Called with each message of a stream. Returns whether it was the last one that is expected. */
  readonly onMessage: (message: Fields) => boolean
}

/** What a server answered. */
export interface PostAnswer {
  readonly status: number
  readonly session: string | undefined
  /** The JSON of an answer that is not a stream; undefined for a stream, or if there is no object. */
  readonly message: Fields | undefined
}

/** Sends messages to servers. */
export class ServerTransport {
  readonly #mark: string
  readonly #client = new NamedServerClient(LIMITS)
  /** By kind and origin, because servers of the same origin share its connections. */
  readonly #places = new Map<string, FairSemaphore>()

  /** `mark`: the text that marks requests of this gateway. */
  constructor(mark: string) {
    this.#mark = mark
  }

  /**
   * Waits for a place for a request to a server; API keys share the places fairly. Resolves to a function that gives it back.
   * Rejects with the reason of `signal`.
   */
  async enter(
    url: string,
    kind: keyof typeof PLACES,
    tokenId: number,
    signal: AbortSignal,
  ): Promise<() => void> {
    const key = `${kind} ${new URL(url).origin}`
    let places = this.#places.get(key)
    if (!places) this.#places.set(key, (places = placesOf(kind)))
    const entry = places.enter(tokenId)
    const leave = (): void => entry.leave()
    signal.addEventListener('abort', leave)
    if (signal.aborted) leave()
    await entry.decided
    signal.removeEventListener('abort', leave)
    if (entry.isIn) return leave
    throw signal.reason
  }

  /** Rejects with `ServerFailure`, with the reason of `signal`, or with an error that `take` throws. */
  async post({
    url,
    headers,
    body,
    maxBytes,
    signal,
    onSent,
    take,
    onMessage,
  }: ServerPost): Promise<PostAnswer> {
    const response = await this.#send('POST', url, headers, body, signal, onSent)
    const { statusCode: status, body: answer } = response
    try {
      if (status === 401 || status === 403) throw new ServerFailure('server_auth', `status ${status}`)
      if (status >= 500) throw new ServerFailure('server_unavailable', `status ${status}`)
      if (status >= 300 && status < 400) throw new ServerFailure('server_answer', `a redirect (${status})`)
      const session = response.headers['mcp-session-id']
      const head = { status, session: typeof session === 'string' && session !== '' ? session : undefined }
      const pieces = piecesOf(answer, maxBytes, signal, take)
      const type = String(response.headers['content-type'] ?? '')
      if (status === 200 && /^text\/event-stream\b/i.test(type)) {
        await readEvents(pieces, maxBytes, onMessage)
        return { ...head, message: undefined }
      }
      const bytes = new ChunkList()
      for await (const piece of pieces) bytes.add(piece)
      return { ...head, message: status === 202 ? undefined : objectIn(bytes.take()) }
    } finally {
      // A body that is not read to its end would keep its connection open.
      answer.destroy()
    }
  }

  /** Ends a session. Failures are ignored, because the server ends idle sessions itself. */
  async delete(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    try {
      const { body } = await this.#send('DELETE', url, headers, undefined, signal)
      body.destroy()
    } catch {
      // The session ends by itself.
    }
  }

  /** Posts a form to a token endpoint. Rejects with `ServerFailure`. */
  async postForm(url: string, form: string, signal: AbortSignal): Promise<{ status: number; body: unknown }> {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
    const response = await this.#send('POST', url, headers, form, signal)
    try {
      const bytes: Buffer[] = []
      for await (const piece of piecesOf(response.body, 65_536, signal, undefined)) bytes.push(piece)
      return { status: response.statusCode, body: objectIn(Buffer.concat(bytes)) }
    } finally {
      response.body.destroy()
    }
  }

  async #send(
    method: 'POST' | 'DELETE',
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string | undefined,
    signal: AbortSignal,
    onSent?: () => void,
  ): Promise<Dispatcher.ResponseData> {
    try {
      return await this.#client.request(
        method,
        url,
        { ...headers, [LOOP_MARK_HEADER]: this.#mark },
        body,
        signal,
        onSent,
      )
    } catch (error) {
      throw unreachable(error, signal)
    }
  }

  /** Ends all running requests. */
  close(): Promise<void> {
    return this.#client.close()
  }
}

function placesOf(kind: keyof typeof PLACES): FairSemaphore {
  return new FairSemaphore({
    max: () => PLACES[kind],
    aloneShare: ALONE,
    // Only requests wait that have slots, and within the timeout of the server.
    waiting: () => Number.POSITIVE_INFINITY,
    waitMs: () => LIMITS.maxMs,
    nowMs: () => performance.now(),
  })
}

/** The pieces of an answer, within its maximum size. */
async function* piecesOf(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  signal: AbortSignal,
  take: ServerPost['take'],
): AsyncGenerator<Buffer> {
  const pieces = body[Symbol.asyncIterator]()
  let length = 0
  for (;;) {
    const next = await pieces.next().catch((error: unknown) => {
      throw signal.aborted
        ? signal.reason
        : new ServerFailure('server_answer', 'it broke off', { cause: error })
    })
    if (next.done) return
    length += next.value.length
    if (length > maxBytes) throw new ServerFailure('server_answer', `more than ${maxBytes} bytes`)
    await take?.(next.value.length, signal)
    yield next.value
  }
}

async function readEvents(
  pieces: AsyncIterable<Buffer>,
  maxBytes: number,
  onMessage: ServerPost['onMessage'],
): Promise<void> {
  const splitter = new FrameSplitter(maxBytes)
  const read = (frame: string): boolean => {
    const data = dataOf(frame)
    if (data === '') return false
    const message = objectIn(Buffer.from(data))
    if (!message) throw new ServerFailure('server_answer', 'an event without a JSON object')
    return onMessage(message)
  }
  for await (const piece of pieces) {
    const bytes = splitter.take(piece)
    if (!bytes) continue
    let from = 0
    for (let end = splitter.next(from); end !== -1; end = splitter.next(from)) {
      if (read(bytes.toString('utf8', from, end))) return
      from = end
    }
    splitter.markRead(from)
  }
  read(splitter.takeBuffered().toString())
}

/** The data of an event, without its other fields. */
function dataOf(frame: string): string {
  return frame
    .split(/\r\n|\r|\n/)
    .flatMap((line) => (line.startsWith('data:') ? [line.slice(line[5] === ' ' ? 6 : 5)] : []))
    .join('\n')
}

/** The JSON object of an answer; undefined if there is none. Throws a `ServerFailure` if it is too deep. */
function objectIn(bytes: Buffer): Fields | undefined {
  if (isTooDeep(bytes)) throw new ServerFailure('server_answer', `more than ${MAX_LEVELS} levels`)
  try {
    const value = parseExact(bytes.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

// Deeper values would exhaust the stack when they are written.
function isTooDeep(bytes: Buffer): boolean {
  let levels = 0
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isText) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isText = false
    } else if (byte === QUOTE) isText = true
    else if (byte === 0x7b || byte === 0x5b) {
      levels += 1
      if (levels > MAX_LEVELS) return true
    } else if (byte === 0x7d || byte === 0x5d) levels -= 1
  }
  return false
}

// Error messages may contain URLs with passwords, so only the error's code is included.
function unreachable(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return new ServerFailure('server_unavailable', typeof code === 'string' ? code : 'no connection', {
    cause: error,
  })
}
