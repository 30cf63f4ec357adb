import type { Caller } from '../../accounts/authentication/caller.ts'
import type { Body, BodyReader } from '../../call/body-reader.ts'
import { bodyOptions } from '../../call/parse-request.ts'
import type { Relay } from '../../call/relay.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { MCP_VERSIONS, type McpVersion } from '../../domain/mcp.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import { answerHeaders } from '../../http/answer-headers.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { ClientAnswerStream, sendMessage } from './client-answer.ts'
import { type ClientMessage, checkStateless, isStateless, mismatch, readMessage } from './client-request.ts'
import { convertedResult, forClient } from './client-results.ts'
import { ClientSessions } from './client-sessions.ts'
import { allEnded, type GatheredList, gatherList, templateMatcher } from './gathered-lists.ts'
import {
  listedName,
  type ListName,
  LISTS,
  type ParamHeader,
  paramHeaders,
  paramValue,
  splitName,
} from './listed-entries.ts'
import {
  asFields,
  CODES,
  type Fields,
  gatewayInfo,
  hasSessions,
  headerText,
  isObject,
  McpError,
  META,
  STATELESS,
  USUAL_SESSION,
} from './protocol.ts'
import { type AnswerSink, type ClientAnswer, type ServerCall, serverCall } from './server-call.ts'
import type { ListReader } from './server-lists.ts'
import { ServerFailure } from './server-transport.ts'
import type { KnownServer, McpServers } from './servers.ts'
import type { ToolApprovals } from './tool-approvals.ts'
import { NO_TOOLS, type ToolAccess, toolAccess } from './toolsets.ts'

/** Milliseconds for which the definition of a tool serves for calls, if its server wants it not to be kept. */
const DEFINITION_AGE_MS = 60_000

export interface McpEndpointServices {
  readonly settings: () => Settings
  readonly servers: McpServers
  readonly bodies: BodyReader
  readonly relay: Relay
  readonly metrics: Metrics
  readonly approvals: ToolApprovals
  /** Signs ids of sessions. */
  readonly sign: (text: string) => string
}

/** A request of a client whose form was checked. */
interface ClientRequest {
  readonly incoming: IncomingCall
  readonly caller: Caller
  readonly settings: Settings
  readonly access: ToolAccess
  readonly message: ClientMessage & { readonly id: string | number }
  readonly version: McpVersion
  readonly body: Body
  /** Where the answer goes, if the client has not sent the request as a message. */
  readonly sink?: AnswerSink
}

/** What is asked of which server. */
type AskedOfServer = Pick<ServerCall, 'known' | 'name' | 'listed' | 'failure' | 'timeoutMs'>

/** A tool or prompt with its entry in the list of its server; without one, the list could not be read. */
interface FoundEntry extends AskedOfServer {
  readonly entry?: Fields
}

/** The endpoint for clients of the Model Context Protocol: one server in front of many. `docs/mcp.md`. */
export class McpEndpoint {
  readonly #services: McpEndpointServices
  readonly #sessions: ClientSessions
  /** How to cancel the running calls of sessions, by API key, session and id. */
  readonly #running = new Map<string, Set<() => void>>()

  constructor(services: McpEndpointServices) {
    this.#services = services
    this.#sessions = new ClientSessions(services.sign)
  }

  /**
   * Answers a message. `toolset`: name of the only toolset that counts. Rejects with the errors of other calls;
   * `onRequest` is called with the id of the message before.
   */
  async handle(
    incoming: IncomingCall,
    caller: Caller,
    toolset: string | undefined,
    onRequest: (id: string | number) => void,
  ): Promise<void> {
    const settings = this.#services.settings()
    refuseForeignOrigin(incoming, settings)
    const access = toolAccess(settings.mcp, caller, toolset)
    if (!access) throw new GatewayError('not_found', 'there is no such toolset')
    const body = await this.#services.bodies.read(incoming, bodyOptions(caller, settings))
    let id: string | number | undefined
    try {
      const message = readMessage(body.bytes)
      id = message.id
      if (id === undefined) return this.#notified(incoming, caller, message)
      onRequest(id)
      const request = { incoming, caller, settings, access, message: { ...message, id }, body }
      await this.#answer(request, message)
    } catch (error) {
      if (!(error instanceof McpError)) throw error
      const { code, message, data, status } = error
      const sent = { code, message, ...(data !== undefined && { data }) }
      sendMessage(incoming, status, { ...(id !== undefined && { id }), error: sent })
    } finally {
      incoming.response.whenRead(body.release)
    }
  }

  /**
   * The tools of a caller, for a model that may call them. `toolset` as for `handle`; undefined if there is no such toolset.
   * `take` allocates memory for lists that are read.
   */
  async listTools(
    caller: Caller,
    toolset: string | undefined,
    take: (bytes: number) => void,
  ): Promise<GatheredList | undefined> {
    const settings = this.#services.settings()
    const access = toolAccess(settings.mcp, caller, toolset)
    if (!access) return undefined
    const servers = [...this.#servers({ settings }).values()]
    return gatherList(servers, 'tools', { tokenId: caller.token.id, take }, access, this.#services.approvals)
  }

  /**
   * Calls a tool for a model, by a message in the body of `incoming`. Resolves to undefined if the
   * client has left. Rejects with `McpError`, or like `handle`.
   */
  async callTool(
    incoming: IncomingCall,
    caller: Caller,
    toolset: string | undefined,
  ): Promise<ClientAnswer | undefined> {
    const settings = this.#services.settings()
    const body = await this.#services.bodies.read(incoming, bodyOptions(caller, settings))
    try {
      const message = readMessage(body.bytes)
      const access = toolAccess(settings.mcp, caller, toolset) ?? NO_TOOLS
      let answer: ClientAnswer | undefined
      const sink: AnswerSink = {
        wants: () => false,
        notify() {},
        finish(_call, _target, given) {
          answer = given
          incoming.response.writeHead(204, {}).end()
        },
      }
      const request = { incoming, caller, settings, access, body, sink, version: STATELESS }
      await this.#callTool({ ...request, message: { ...message, id: 1 } })
      return answer
    } finally {
      body.release()
    }
  }

  #notified(incoming: IncomingCall, caller: Caller, message: ClientMessage): void {
    const session = incoming.request.headers['mcp-session-id']
    if (session !== undefined && !isStateless(message, incoming.request.headers)) {
      this.#requireSession(incoming, caller)
      if (message.method === 'notifications/cancelled')
        for (const cancel of this.#running.get(runningKey(caller, session, message.params['requestId'])) ??
          [])
          cancel()
    }
    incoming.response
      .writeHead(202, { 'content-length': '0', ...answerHeaders(incoming.id, undefined) })
      .end()
  }

  #requireSession({ request }: IncomingCall, { token }: Caller): McpVersion {
    const id = request.headers['mcp-session-id']
    if (id === undefined)
      throw new McpError(CODES.request, 'Bad Request: the header Mcp-Session-Id is missing', { status: 400 })
    const version = this.#sessions.versionOf(id, token.id)
    if (version === undefined) throw new McpError(CODES.request, 'Session not found', { status: 404 })
    return version
  }

  async #answer(request: Omit<ClientRequest, 'version'>, message: ClientMessage): Promise<void> {
    const { incoming, caller } = request
    const { headers } = incoming.request
    if (isStateless(message, headers)) {
      checkStateless(message, headers)
      return this.#stateless({ ...request, version: STATELESS })
    }
    if (message.method === 'initialize') return this.#initialize(request)
    const version = this.#requireSession(incoming, caller)
    const header = headers['mcp-protocol-version']
    if (header !== undefined && !hasSessions(header))
      throw new McpError(CODES.request, 'Bad Request: unsupported protocol version', { status: 400 })
    return this.#inSession({ ...request, version })
  }

  #initialize({ incoming, caller, message }: Omit<ClientRequest, 'version'>): void {
    const { protocolVersion: asked } = message.params
    const version = typeof asked === 'string' && hasSessions(asked) ? asked : USUAL_SESSION
    const result = { protocolVersion: version, capabilities: CAPABILITIES, serverInfo: gatewayInfo() }
    const session = this.#sessions.create(version, caller.token.id)
    sendMessage(incoming, 200, { id: message.id, result }, { 'mcp-session-id': session })
  }

  async #stateless(request: ClientRequest): Promise<void> {
    const { message, incoming } = request
    if (message.method === 'server/discover') {
      const result = {
        supportedVersions: [...MCP_VERSIONS],
        capabilities: CAPABILITIES,
        ttlMs: 0,
        cacheScope: 'private',
      }
      sendMessage(incoming, 200, { id: message.id, result: forClient(STATELESS, result) })
    } else if (!(await this.#common(request)))
      throw new McpError(CODES.method, 'Method not found', { status: 404 })
  }

  async #inSession(request: ClientRequest): Promise<void> {
    const { message, incoming } = request
    if (message.method === 'ping' || message.method === 'logging/setLevel')
      sendMessage(incoming, 200, { id: message.id, result: {} })
    else if (!(await this.#common(request))) throw new McpError(CODES.method, 'Method not found')
  }

  /** Answers the methods that all revisions have. Resolves to false for another one. */
  async #common(request: ClientRequest): Promise<boolean> {
    const { method } = request.message
    const list = (Object.keys(LISTS) as ListName[]).find((name) => LISTS[name].method === method)
    if (list) await this.#list(request, list)
    else if (method === 'tools/call') await this.#callTool(request)
    else if (method === 'prompts/get') await this.#getPrompt(request)
    else if (method === 'resources/read') await this.#readResource(request)
    else if (method === 'completion/complete') await this.#complete(request)
    else return false
    return true
  }

  #servers({ settings }: Pick<ClientRequest, 'settings'>): ReadonlyMap<string, KnownServer> {
    return this.#services.servers.of(settings.mcp)
  }

  async #list(request: ClientRequest, list: ListName): Promise<void> {
    const { message, incoming, access, body, version } = request
    if (message.params['cursor'] !== undefined)
      throw new McpError(CODES.params, 'Invalid params: lists have one page, so there is no cursor')
    const { entries, ttlMs, unavailable } = await gatherList(
      [...this.#servers(request).values()],
      list,
      readerOf(request),
      access,
      this.#services.approvals,
    )
    const result = { [LISTS[list].member]: entries, ttlMs, cacheScope: 'private' }
    const headers: Record<string, string> =
      unavailable.length > 0 ? { 'x-gateway-mcp-unavailable': unavailable.join(', ') } : {}
    sendMessage(incoming, 200, { id: message.id, result: forClient(version, result) }, headers, body.hold)
  }

  async #callTool(request: ClientRequest): Promise<void> {
    const { name: listed, arguments: given } = request.message.params
    if (typeof listed !== 'string') throw new McpError(CODES.params, 'Invalid params: name is missing')
    if (given !== undefined && !isObject(given))
      throw new McpError(CODES.params, 'Invalid params: arguments is not an object')
    const { entry, ...found } = await this.#find(request, 'tool', listed)
    let marked: readonly ParamHeader[] = []
    if (entry) {
      const visible = await this.#services.approvals.visible(found.known.server, [entry])
      if (visible.length === 0)
        throw new McpError(
          CODES.params,
          'this tool is withheld until an administrator approves its definition',
          {
            data: { code: 'tool_withheld' },
          },
        )
      marked = paramHeaders(asFields(entry['inputSchema'])) ?? []
    }
    if (request.version === STATELESS && !request.sink) checkParamHeaders(request, marked)
    await this.#forward(request, {
      ...found,
      paramHeaders: marked,
      ownParams: (params) => ({ ...params, name: found.name }),
    })
  }

  async #getPrompt(request: ClientRequest): Promise<void> {
    const { name: listed } = request.message.params
    if (typeof listed !== 'string') throw new McpError(CODES.params, 'Invalid params: name is missing')
    const { entry: _, ...found } = await this.#find(request, 'prompt', listed)
    await this.#forward(request, {
      ...found,
      ownParams: (params) => ({ ...params, name: found.name }),
    })
  }

  /** Finds the server of a tool or prompt. Throws if the caller has none of that name. */
  async #find(request: ClientRequest, kind: 'tool' | 'prompt', listed: string): Promise<FoundEntry> {
    const unknown = new McpError(CODES.params, `Unknown ${kind}: ${listed.slice(0, 200)}`)
    const split = splitName(listed)
    const known = split && this.#servers(request).get(split.server)
    if (!known || !request.access.has(split.server, split.name)) throw unknown
    const { server, lists } = known
    const beganMs = performance.now()
    const list = await listOrFailure(known, `${kind}s`, request)
    const timeoutMs = Math.max(0, server.timeout - (performance.now() - beganMs))
    if (!(list instanceof ServerFailure)) {
      const entry = list.entries.find(({ name }) => name === split.name)
      if (!entry) throw unknown
      return { known, name: split.name, listed, timeoutMs, entry }
    }
    // What was never listed may be any text of the client, which must become neither a row's model nor a metric's label.
    const isListed = lists.hasListed(`${kind}s`, split.name) || request.settings.mcp.approved.has(listed)
    const name = isListed ? split.name : kind
    return { known, name, listed: listedName(server.name, name), timeoutMs, failure: list }
  }

  async #readResource(request: ClientRequest): Promise<void> {
    const { uri } = request.message.params
    if (typeof uri !== 'string') throw new McpError(CODES.params, 'Invalid params: uri is missing')
    const known = await this.#serverOf(request, uri)
    if (!known)
      throw new McpError(
        request.version === STATELESS ? CODES.params : CODES.resource,
        'Resource not found',
        { data: { uri } },
      )
    await this.#forward(request, resourceOf(known))
  }

  /** The first server by name that lists a resource, otherwise the first one with a template that fits. */
  async #serverOf(request: ClientRequest, uri: string): Promise<KnownServer | undefined> {
    const { access } = request
    const servers = [...this.#servers(request).values()].filter(({ server }) => access.hasAll(server.name))
    const has = async (
      list: ListName,
      matcher: () => (entry: Fields) => boolean,
    ): Promise<KnownServer | undefined> => {
      const found = await allEnded(
        servers.map(async (known) => {
          const given = await listOrFailure(known, list, request)
          return !(given instanceof ServerFailure) && given.entries.some(matcher())
        }),
      )
      return servers[found.indexOf(true)]
    }
    return (
      (await has('resources', () => (entry) => entry['uri'] === uri)) ??
      (await has('templates', () => {
        const matches = templateMatcher(uri)
        return (entry) => matches(String(entry['uriTemplate']))
      }))
    )
  }

  async #complete(request: ClientRequest): Promise<void> {
    const { message, access } = request
    const ref = asFields(message.params['ref'])
    if (ref['type'] === 'ref/prompt' && typeof ref['name'] === 'string') {
      const { entry: _, ...found } = await this.#find(request, 'prompt', ref['name'])
      return this.#forward(request, {
        ...found,
        ownParams: (params) => ({ ...params, ref: { ...asFields(params['ref']), name: found.name } }),
      })
    }
    const { uri } = ref
    if (ref['type'] !== 'ref/resource' || typeof uri !== 'string')
      throw new McpError(CODES.params, 'Invalid params: ref is missing')
    for (const known of this.#servers(request).values()) {
      if (!access.hasAll(known.server.name)) continue
      const templates = await listOrFailure(known, 'templates', request)
      if (templates instanceof ServerFailure) continue
      if (templates.entries.some((entry) => entry['uriTemplate'] === uri))
        return this.#forward(request, resourceOf(known))
    }
    throw new McpError(CODES.params, 'Unknown resource template')
  }

  async #forward(
    { incoming, caller, settings, message, version, body, sink: own }: ClientRequest,
    asked: AskedOfServer & Partial<Pick<ServerCall, 'paramHeaders' | 'ownParams'>>,
  ): Promise<void> {
    const meta = asFields(message.params['_meta'])
    const { progressToken } = meta
    const logLevel = version === STATELESS ? meta[META.logLevel] : 'info'
    const isStateless = version === STATELESS
    const stream = own
      ? undefined
      : new ClientAnswerStream(incoming, message.id, { progressToken, logLevel, isStateless })
    const cancelling = new AbortController()
    const session = incoming.request.headers['mcp-session-id']
    const key =
      version === STATELESS || session === undefined ? undefined : runningKey(caller, session, message.id)
    const cancel = (): void => {
      cancelling.abort()
      stream?.cancelled()
    }
    // A client that gives two running calls the same id cancels both.
    if (key !== undefined) this.#running.set(key, (this.#running.get(key) ?? new Set()).add(cancel))
    const call: ServerCall = {
      id: message.id,
      version,
      method: message.method,
      paramHeaders: [],
      wantsProgress: progressToken !== undefined,
      ownParams: (params) => params,
      converted: (reply) => convertedResult(reply, version, message.method),
      cancelled: cancelling.signal,
      sink: own ?? (stream as AnswerSink),
      ...asked,
    }
    try {
      const { relay, metrics } = this.#services
      await relay.callOther(serverCall(call, body, settings, caller, metrics), incoming, caller)
    } catch (error) {
      if (message.method === 'tools/call')
        this.#services.metrics.add('mcpCalls', 1, asked.known.server.name, 'refused')
      if (!stream?.hasBegun) throw error
      stream.fail(-32_603, 'the call was ended by the gateway')
    } finally {
      const running = key === undefined ? undefined : this.#running.get(key)
      running?.delete(cancel)
      if (key !== undefined && running?.size === 0) this.#running.delete(key)
    }
  }
}

/** What the gateway offers, regardless of its servers. Subscriptions and changes of lists are not passed on. */
const CAPABILITIES = { tools: {}, prompts: {}, resources: {}, completions: {}, logging: {} }

function runningKey({ token }: Caller, session: string, id: unknown): string {
  return `${token.id}\n${session}\n${JSON.stringify(id)}`
}

/** The URI is the client's, so that it is not recorded. */
function resourceOf(known: KnownServer): AskedOfServer {
  return { known, name: 'resource', listed: listedName(known.server.name, 'resource') }
}

function readerOf({ caller, body }: ClientRequest): ListReader {
  return { tokenId: caller.token.id, take: body.hold }
}

async function listOrFailure(
  { lists }: KnownServer,
  list: ListName,
  request: ClientRequest,
): Promise<Awaited<ReturnType<KnownServer['lists']['get']>> | ServerFailure> {
  try {
    return await lists.get(list, readerOf(request), DEFINITION_AGE_MS)
  } catch (error) {
    if (error instanceof ServerFailure) return error
    throw error
  }
}

/** Throws if the headers that repeat parameters differ from them. */
function checkParamHeaders({ incoming, message }: ClientRequest, marked: readonly ParamHeader[]): void {
  const headers = incoming.request.headers as Readonly<Record<string, string | undefined>>
  for (const { header, path } of marked) {
    const sent = headers[`mcp-param-${header}`]
    const value = paramValue(message.params['arguments'], path)
    const text = sent === undefined ? undefined : headerText(sent)
    const isEqual =
      text === value ||
      (text !== undefined &&
        value !== undefined &&
        /^-?\d+(?:\.0+)?$/.test(text) &&
        Number(text) === Number(value))
    if (!isEqual || (sent !== undefined && text === undefined))
      throw mismatch(`the header Mcp-Param-${header} differs from the argument`)
  }
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Throws if a page of another site has sent the request. */
function refuseForeignOrigin({ request }: IncomingCall, { options }: Settings): void {
  const { origin } = request.headers
  if (origin === undefined || options.cors.origins.some((one) => one === '*' || one === origin)) return
  const url = URL.parse(origin)
  if (url && (LOOPBACK.test(url.hostname) || url.origin === options.public_url)) return
  throw new GatewayError('other_site', 'the origin of this request is not allowed')
}
