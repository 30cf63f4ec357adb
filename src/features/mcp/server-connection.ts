import { MCP_VERSIONS, type McpServer, type McpSessionVersion, type McpVersion } from '../../domain/mcp.ts'
import type { McpServerState } from '../../management/mcp/mcp-tools.ts'
import { untilAborted } from '../../upstreams/until-aborted.ts'
import { AccessToken } from './client-credentials.ts'
import { LISTS } from './listed-entries.ts'
import {
  asFields,
  CODES,
  type Fields,
  foreignMeta,
  gatewayInfo,
  hasSessions,
  headerValue,
  isObject,
  META,
  STATELESS,
  USUAL_SESSION,
} from './protocol.ts'
import { type ServerError, withoutSecrets } from './server-error.ts'
import { type PostAnswer, ServerFailure, type ServerTransport, type TakeMemory } from './server-transport.ts'

/** Milliseconds after which an unused session is given up. */
const IDLE_MS = 600_000
/** Timeout, in milliseconds, of messages whose answers are not needed. */
const NOTICE_TIMEOUT_MS = 5_000
/** Maximum number of requests of a server on the stream of one answer. The gateway answers each with another POST. */
const MAX_SERVER_REQUESTS = 16
const ACCEPT = 'application/json, text/event-stream'

/** A request to a server on behalf of an API key. */
export interface ServerRequest {
  readonly method: string
  /** The parameters without `_meta`. */
  readonly params: Fields
  /** The members of `_meta` that pass from a client. */
  readonly meta?: Fields
  /** Values of parameters that are sent as headers too, by the name in the header. */
  readonly paramHeaders?: Readonly<Record<string, string>>
  readonly tokenId: number
  /** Aborted when the answer is no longer needed. The request then rejects with its reason. */
  readonly signal: AbortSignal
  readonly timeoutMs?: number | undefined
  /** Called when the request itself begins to be sent, after what it needs: a session and a token. */
  readonly onSent?: () => void
  readonly take?: TakeMemory | undefined
  /** Whether the client understands a result that requires input of it. */
  readonly mayRequireInput?: boolean
  /** Whether the server may report progress. */
  readonly wantsProgress?: boolean
  /** Called with the parameters of progress of this request, which have no token, and of log messages. */
  readonly onNotification?: (method: string, params: Fields) => void
}

/** The answer of a server: a result or an error. */
export interface ServerReply {
  readonly version: McpVersion
  readonly result?: Fields
  readonly error?: ServerError
}

interface Session {
  readonly id: string | undefined
  readonly version: McpSessionVersion
  readonly capabilities: Capabilities
}

/** The session of an API key. */
interface KeySession {
  readonly session: Promise<Session>
  /** When it was last used, by `performance.now()`. */
  usedMs: number
  /** Number of requests that run in it. */
  running: number
}

/** What was found out about a server. */
interface Found {
  readonly version: McpVersion
  readonly capabilities: Capabilities
}

/** The capabilities of `LISTS` that a server declares. What else it says of itself is not kept. */
type Capabilities = ReadonlySet<string>

/** Speaks with one server, in the revision that the server has. */
export class ServerConnection {
  readonly server: McpServer
  readonly #transport: ServerTransport
  readonly #token: AccessToken | undefined
  #found: Promise<Found> | undefined
  /** The session of each API key. */
  readonly #sessions = new Map<number, KeySession>()
  #lastId = 0
  #isClosed = false
  /** State by the last request. */
  state: McpServerState = 'ok'
  /** The revision that the server speaks; undefined if that is not known yet. */
  version: McpVersion | undefined

  constructor(server: McpServer, transport: ServerTransport) {
    this.server = server
    this.#transport = transport
    this.#token =
      server.auth.kind === 'oauth_client' ? new AccessToken(server.auth, server.url, transport) : undefined
  }

  /** The capabilities that the server declares. Rejects with `ServerFailure`. */
  async capabilities(tokenId: number): Promise<Capabilities> {
    const { version, capabilities } = await this.#find()
    return version === STATELESS ? capabilities : (await this.#session(tokenId).session).capabilities
  }

  /** Rejects with `ServerFailure`, or with the reason of the signal. */
  async request(asked: ServerRequest): Promise<ServerReply> {
    const timeout = new AbortController()
    const { timeoutMs = this.server.timeout } = asked
    const timer = setTimeout(
      () => timeout.abort(new ServerFailure('server_timeout', `no answer in ${this.server.timeout} ms`)),
      timeoutMs,
    )
    const signal = AbortSignal.any([asked.signal, timeout.signal])
    let leave: (() => void) | undefined
    try {
      const kind = asked.method.endsWith('/list') ? 'lists' : 'calls'
      leave = await this.#transport.enter(this.server.url, kind, asked.tokenId, signal)
      const { version } = await untilAborted(this.#find(), signal)
      const reply =
        version === STATELESS ? await this.#stateless(asked, signal) : await this.#inSession(asked, signal)
      this.state = 'ok'
      return reply
    } catch (error) {
      this.#failed(error)
      throw error
    } finally {
      leave?.()
      clearTimeout(timer)
    }
  }

  /** Ends the sessions, each after its last request, because the server is no longer configured like this. */
  close(): void {
    this.#isClosed = true
    this.endIdleSessions(Number.POSITIVE_INFINITY)
  }

  #failed(error: unknown): void {
    if (!(error instanceof ServerFailure)) return
    if (error.code === 'server_auth') this.state = 'unauthorized'
    else if (error.code !== 'server_timeout') {
      this.state = 'unavailable'
      // The server may have been replaced by one of another revision.
      this.#found = undefined
    } else this.state = 'unavailable'
  }

  /** Finds out which revision the server speaks. Concurrent requests ask once. */
  #find(): Promise<Found> {
    if (this.#found) return this.#found
    const finding = this.#probe().then(
      (found) => {
        this.version = found.version
        return found
      },
      (error: unknown) => {
        if (this.#found === finding) this.#found = undefined
        this.#failed(error)
        throw error
      },
    )
    this.#found = finding
    return finding
  }

  async #probe(): Promise<Found> {
    const { era } = this.server
    if (hasSessions(era)) return { version: era, capabilities: capabilitiesIn({}) }
    const asked = { method: 'server/discover', params: {}, tokenId: 0 }
    const headers = this.#statelessHeaders(asked.method, asked.params)
    const { reply } = await this.#withinTimeout((signal) =>
      this.#send({ ...asked, signal }, signal, headers, undefined),
    ).catch((error: unknown) => {
      // A server of an older revision may answer in any form.
      if (error instanceof ServerFailure && error.code === 'server_answer') return { reply: undefined }
      throw error
    })
    const { supportedVersions, capabilities } = asFields(reply?.result)
    const supported = supportedVersions ?? asFields(reply?.error?.data)['supported']
    const versions: readonly unknown[] = Array.isArray(supported) ? supported : []
    if (reply?.result && versions.includes(STATELESS))
      return { version: STATELESS, capabilities: capabilitiesIn(capabilities) }
    if (era === STATELESS) throw new ServerFailure('server_answer', `it does not speak ${STATELESS}`)
    const version = MCP_VERSIONS.find(
      (one): one is McpSessionVersion => hasSessions(one) && versions.includes(one),
    )
    return { version: version ?? USUAL_SESSION, capabilities: capabilitiesIn({}) }
  }

  /** Runs what no client waits for, with a signal that the timeout of the server aborts. */
  async #withinTimeout<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController()
    const { timeout } = this.server
    const timer = setTimeout(
      () => controller.abort(new ServerFailure('server_timeout', `no answer in ${timeout} ms`)),
      timeout,
    ).unref()
    try {
      return await run(controller.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  async #stateless(asked: ServerRequest, signal: AbortSignal): Promise<ServerReply> {
    const headers = this.#statelessHeaders(asked.method, asked.params, asked.paramHeaders)
    const { reply } = await this.#send(asked, signal, headers, undefined)
    if (!reply) throw new ServerFailure('server_answer', 'no JSON-RPC answer')
    if (reply.error?.code === CODES.version) throw new ServerFailure('server_answer', 'another revision')
    const type = reply.result?.['resultType'] ?? 'complete'
    const mayRequireInput = asked.mayRequireInput && MAY_ASK.has(asked.method)
    if (reply.result && type !== 'complete' && !(type === 'input_required' && mayRequireInput))
      throw new ServerFailure('server_answer', 'a resultType that its client does not know')
    return reply
  }

  #statelessHeaders(method: string, params: Fields, paramHeaders: Readonly<Record<string, string>> = {}) {
    const named = NAMED_BY.get(method)
    const name = named === undefined ? undefined : params[named]
    return {
      'mcp-protocol-version': STATELESS,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': headerValue(name) }),
      ...Object.fromEntries(
        Object.entries(paramHeaders).map(([header, value]) => [`mcp-param-${header}`, headerValue(value)]),
      ),
    }
  }

  async #inSession(asked: ServerRequest, signal: AbortSignal): Promise<ServerReply> {
    for (const isLast of [false, true]) {
      const known = this.#session(asked.tokenId)
      known.running += 1
      try {
        const session = await untilAborted(known.session, signal)
        const { post, reply } = await this.#send(asked, signal, sessionHeaders(session), session)
        if (post.status === 404 && session.id !== undefined && !isLast) {
          this.#forget(asked.tokenId, known)
          continue
        }
        if (!reply) throw new ServerFailure('server_answer', `no JSON-RPC answer (status ${post.status})`)
        return reply
      } finally {
        known.running -= 1
        known.usedMs = performance.now()
        if (this.#isClosed) this.endIdleSessions(Number.POSITIVE_INFINITY)
      }
    }
    throw new ServerFailure('server_answer', 'its sessions end at once')
  }

  #session(tokenId: number): KeySession {
    const nowMs = performance.now()
    const known = this.#sessions.get(tokenId)
    if (known && !this.#endIfIdle(tokenId, known, nowMs)) {
      known.usedMs = nowMs
      return known
    }
    const session = this.#withinTimeout((signal) => this.#initialize(signal))
    const entry = { session, usedMs: nowMs, running: 0 }
    this.#sessions.set(tokenId, entry)
    session.catch((error: unknown) => {
      this.#forget(tokenId, entry)
      this.#failed(error)
    })
    return entry
  }

  #forget(tokenId: number, entry: KeySession): void {
    if (this.#sessions.get(tokenId) === entry) this.#sessions.delete(tokenId)
  }

  /** Ends the sessions that were not used for ten minutes before this time, by `performance.now()`. */
  endIdleSessions(nowMs: number): void {
    for (const [tokenId, entry] of this.#sessions) this.#endIfIdle(tokenId, entry, nowMs)
  }

  #endIfIdle(tokenId: number, entry: KeySession, nowMs: number): boolean {
    if (entry.running > 0 || nowMs - entry.usedMs < IDLE_MS) return false
    this.#sessions.delete(tokenId)
    entry.session.then((one) => this.#end(one)).catch(() => {})
    return true
  }

  async #end(session: Session): Promise<void> {
    if (session.id === undefined) return
    const signal = AbortSignal.timeout(NOTICE_TIMEOUT_MS)
    const headers = { ...(await this.#auth(signal)), ...sessionHeaders(session) }
    await this.#transport.delete(this.server.url, headers, signal)
  }

  async #initialize(signal: AbortSignal): Promise<Session> {
    const found = await this.#find()
    const version = hasSessions(found.version) ? found.version : USUAL_SESSION
    const params = { protocolVersion: version, capabilities: {}, clientInfo: gatewayInfo() }
    const asked = { method: 'initialize', params, tokenId: 0, signal }
    const { post, reply } = await this.#send(
      asked,
      signal,
      { 'mcp-protocol-version': version },
      undefined,
      true,
    )
    const agreed = reply?.result?.['protocolVersion']
    if (typeof agreed !== 'string' || !hasSessions(agreed))
      throw new ServerFailure('server_answer', 'its answer to initialize has no known version')
    if (post.session !== undefined && !/^[!-~]{1,1024}$/.test(post.session))
      throw new ServerFailure('server_answer', 'its session id is not valid')
    const session: Session = {
      id: post.session,
      version: agreed,
      capabilities: capabilitiesIn(reply?.result?.['capabilities']),
    }
    this.version = agreed
    await this.#notify(session, { method: 'notifications/initialized' }, signal)
    return session
  }

  /** Sends a notification, or an answer to the server's own request. */
  async #notify(session: Session, message: Fields, signal: AbortSignal): Promise<void> {
    const { url, most_answer: maxBytes } = this.server
    await this.#transport.post({
      url,
      headers: { ...POST_HEADERS, ...(await this.#auth(signal)), ...sessionHeaders(session) },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      maxBytes,
      signal,
      onMessage: () => false,
    })
  }

  /** Sends a request. `reply` is undefined if the answer is not one of JSON-RPC. */
  async #send(
    asked: ServerRequest,
    signal: AbortSignal,
    headers: Readonly<Record<string, string>>,
    session: Session | undefined,
    isInitialize = false,
  ): Promise<{ readonly post: PostAnswer; readonly reply: ServerReply | undefined }> {
    const version = session?.version ?? STATELESS
    this.#lastId += 1
    const id = this.#lastId
    let reply: ServerReply | undefined
    let requests = 0
    let auth: Readonly<Record<string, string>> = {}
    const read = (message: Fields): boolean => {
      if (typeof message['method'] === 'string') {
        if (message['id'] !== undefined) requests += 1
        if (requests > MAX_SERVER_REQUESTS)
          throw new ServerFailure('server_answer', `more than ${MAX_SERVER_REQUESTS} requests`)
        this.#receive(message, id, asked, session)
        return false
      }
      reply = replyIn(message, id, version)
      if (reply.error) reply = { ...reply, error: withoutSecrets(reply.error, this.server, auth) }
      return true
    }
    const { url, most_answer: maxBytes } = this.server
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: asked.method,
      params: isInitialize ? asked.params : { ...asked.params, ...metaOf(asked, id, session) },
    })
    const cancel = (): void => {
      // Closing the stream cancels a request of 2026-07-28; before, the server must be told.
      if (session) this.#cancel(session, id)
    }
    try {
      for (const isLast of [this.#token === undefined, true]) {
        auth = await this.#auth(signal)
        signal.addEventListener('abort', cancel)
        try {
          const post = await this.#transport.post({
            url,
            headers: { ...POST_HEADERS, ...auth, ...headers },
            body,
            maxBytes,
            signal,
            onSent: asked.onSent,
            take: asked.take,
            onMessage: read,
          })
          const isEnd = post.status === 404 && session?.id !== undefined
          if (post.message && !isEnd && !read(post.message))
            throw new ServerFailure('server_answer', 'a message without an answer')
          return { post, reply }
        } catch (error) {
          if (isLast || !(error instanceof ServerFailure) || error.code !== 'server_auth') throw error
          this.#token?.discard(auth['authorization']?.slice('Bearer '.length) ?? '')
        }
      }
    } finally {
      signal.removeEventListener('abort', cancel)
    }
    throw new ServerFailure('server_auth', 'refused')
  }

  /** Handles a notification or a request that the server sends before its answer. */
  #receive(message: Fields, id: number, asked: ServerRequest, session: Session | undefined): void {
    const { method } = message
    const params = asFields(message['params'])
    if (message['id'] === undefined) {
      if (method === 'notifications/message') asked.onNotification?.(method, params)
      if (method === 'notifications/progress' && params['progressToken'] === id) {
        const { progressToken: _, ...progress } = params
        asked.onNotification?.(method, progress)
      }
      return
    }
    if (!session) throw new ServerFailure('server_answer', 'a request on the stream of an answer')
    const answer =
      method === 'ping'
        ? { id: message['id'], result: {} }
        : { id: message['id'], error: { code: CODES.method, message: 'this client has no such method' } }
    this.#notify(session, answer, AbortSignal.timeout(NOTICE_TIMEOUT_MS)).catch(() => {})
  }

  #cancel(session: Session, requestId: number): void {
    const params = { requestId, reason: 'the client has left' }
    const message = { method: 'notifications/cancelled', params }
    this.#notify(session, message, AbortSignal.timeout(NOTICE_TIMEOUT_MS)).catch(() => {})
  }

  async #auth(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const { auth } = this.server
    if (this.#token) return { authorization: `Bearer ${await untilAborted(this.#token.value(), signal)}` }
    return auth.kind === 'header' ? auth.headers : {}
  }
}

const POST_HEADERS = { 'content-type': 'application/json', accept: ACCEPT }

/** The parameter that the header `Mcp-Name` repeats, by method. */
export const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/** Methods whose result may request input from the client. */
export const MAY_ASK: ReadonlySet<string> = new Set(NAMED_BY.keys())

function capabilitiesIn(declared: unknown): Capabilities {
  const has = asFields(declared)
  const known = Object.values(LISTS).map(({ capability }) => capability)
  return new Set(known.filter((capability) => has[capability] !== undefined))
}

function sessionHeaders({ id, version }: Session): Readonly<Record<string, string>> {
  return { 'mcp-protocol-version': version, ...(id !== undefined && { 'mcp-session-id': id }) }
}

function metaOf(
  { meta = {}, wantsProgress = false }: ServerRequest,
  id: number,
  session: Session | undefined,
): Fields {
  const all = {
    // Servers with sessions were told the capabilities by `initialize`.
    ...(session ? foreignMeta(meta) : { [META.capabilities]: {}, ...meta }),
    ...(wantsProgress && { progressToken: id }),
    ...(!session && { [META.version]: STATELESS, [META.clientInfo]: gatewayInfo() }),
  }
  return Object.keys(all).length > 0 ? { _meta: all } : {}
}

/** Reads the answer to the request with this id. Throws `server_answer` if it is none. */
function replyIn(message: Fields, id: number, version: McpVersion): ServerReply {
  const { result, error } = message
  // Errors about a request that could not be read have no id.
  const isOwn = message['id'] === id || (isObject(error) && (message['id'] ?? null) === null)
  if (!isOwn) throw new ServerFailure('server_answer', 'an answer with another id')
  if (isObject(result) && error === undefined) return { version, result }
  if (isObject(error) && result === undefined) {
    const { code, message: text, data } = error
    if (Number.isSafeInteger(code) && typeof text === 'string')
      return { version, error: { code: code as number, message: text, ...(data !== undefined && { data }) } }
  }
  throw new ServerFailure('server_answer', 'an answer that is not one of JSON-RPC')
}
