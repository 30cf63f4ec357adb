import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Fields = Readonly<Record<string, unknown>>

/** What a tool sees of its call. */
export interface ToolCall {
  readonly arguments: Fields
  readonly params: Fields
  readonly meta: Fields
  /** Reports progress or a log message, if the client wants it. */
  notify(method: string, params: Fields): void
  /** Aborted when the client leaves or cancels. */
  readonly signal: AbortSignal
}

/** An error of JSON-RPC that a tool answers with. */
export class ToolError extends Error {
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** A tool, prompt or resource: how the server lists it, and what it answers. */
export interface Offered {
  readonly definition: Fields
  answer(call: ToolCall): Fields | Promise<Fields>
}

/** A server of the Model Context Protocol. */
export interface McpServerBehaviour {
  readonly name: string
  /** Revisions that it speaks; with 2026-07-28 and others, both kinds of requests are served. */
  readonly versions: readonly string[]
  /** The tools, which may differ at each request. */
  readonly tools?: () => readonly Offered[]
  readonly prompts?: readonly Offered[]
  readonly resources?: readonly Offered[]
  readonly templates?: readonly Offered[]
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
  /** Completes an argument of a prompt or a template. */
  readonly complete?: (params: Fields) => Fields
}

export interface RunningMcpServer {
  readonly url: string
  readonly server: Server
}

const STATELESS = '2026-07-28'
const META = 'io.modelcontextprotocol/'

/** Serves it on a free port of the loopback address. `observe` is called with each message. */
export async function serveMcp(
  behaviour: McpServerBehaviour,
  observe: (message: Fields, request: IncomingMessage) => void = () => {},
): Promise<RunningMcpServer> {
  const sessions = new Set<string>()
  const running = new Map<string, AbortController>()
  const server = createServer((request, response) => {
    void handle(behaviour, { sessions, running, observe }, request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/mcp`, server }
}

interface State {
  readonly sessions: Set<string>
  readonly running: Map<string, AbortController>
  readonly observe: (message: Fields, request: IncomingMessage) => void
}

async function handle(
  behaviour: McpServerBehaviour,
  { sessions, running, observe }: State,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const session = String(request.headers['mcp-session-id'] ?? '')
  if (request.method === 'DELETE') {
    sessions.delete(session)
    return void response.writeHead(200).end()
  }
  if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST, DELETE' }).end()
  const message = await bodyOf(request)
  observe(message, request)
  const { id, method } = message
  const params = fieldsOf(message['params'])
  const meta = fieldsOf(params['_meta'])
  const isStateless = meta[`${META}protocolVersion`] === STATELESS && behaviour.versions.includes(STATELESS)
  const reply = (status: number, fields: Fields, headers: Record<string, string> = {}): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ jsonrpc: '2.0', ...fields }))
  }
  const refuse = (status: number, code: number, text: string): void =>
    reply(status, { id: id ?? null, error: { code, message: text } })
  if (!isStateless && method === 'initialize') {
    const sessionVersions = behaviour.versions.filter((one) => one !== STATELESS)
    const version = sessionVersions.find((one) => one === params['protocolVersion']) ?? sessionVersions[0]
    if (version === undefined) return refuse(400, -32_602, 'Unsupported protocol version')
    const created = randomUUID()
    sessions.add(created)
    const result = {
      protocolVersion: version,
      capabilities: capabilitiesOf(behaviour),
      serverInfo: { name: behaviour.name, version: '1.0.0' },
    }
    return reply(200, { id, result }, { 'mcp-session-id': created })
  }
  if (!isStateless && !sessions.has(session))
    return session === ''
      ? refuse(400, -32_000, 'Bad Request: Server not initialized')
      : refuse(404, -32_001, 'Session not found')
  if (id === undefined) {
    const cancelled =
      method === 'notifications/cancelled' ? `${session} ${JSON.stringify(params['requestId'])}` : ''
    running.get(cancelled)?.abort()
    return void response.writeHead(202).end()
  }
  if (typeof method !== 'string') return refuse(400, -32_600, 'Invalid request')
  const controller = new AbortController()
  const key = `${session} ${JSON.stringify(id)}`
  running.set(key, controller)
  response.on('close', () => controller.abort())
  let hasBegun = false
  const event = (fields: Fields): void => {
    if (!hasBegun) response.writeHead(200, { 'content-type': 'text/event-stream' })
    hasBegun = true
    response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...fields })}\n\n`)
  }
  const notify = (name: string, given: Fields): void => {
    const { progressToken } = meta
    if (name === 'notifications/progress' && progressToken === undefined) return
    if (name === 'notifications/message' && isStateless && meta[`${META}logLevel`] === undefined) return
    const progress = name === 'notifications/progress' && { progressToken }
    event({ method: name, params: { ...given, ...progress } })
  }
  const call = { arguments: fieldsOf(params['arguments']), params, meta, notify, signal: controller.signal }
  try {
    const answered = await answerOf(behaviour, method, call, isStateless)
    const result = isStateless ? { resultType: 'complete', ...answered } : answered
    if (!hasBegun) return reply(200, { id, result })
    event({ id, result })
    response.end()
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    const { code, message: text, data } = error
    const fields = { id, error: { code, message: text, ...(data !== undefined && { data }) } }
    if (hasBegun) {
      event(fields)
      response.end()
    } else reply(isStateless ? (STATUSES.get(code) ?? 200) : 200, fields)
  } finally {
    running.delete(key)
  }
}

const STATUSES = new Map([
  [-32_601, 404],
  [-32_021, 400],
])

function capabilitiesOf({ tools, prompts, resources, templates, complete }: McpServerBehaviour): Fields {
  return {
    ...(tools && { tools: {} }),
    ...(prompts && { prompts: {} }),
    ...((resources ?? templates) && { resources: {} }),
    ...(complete && { completions: {} }),
    logging: {},
  }
}

async function answerOf(
  behaviour: McpServerBehaviour,
  method: string,
  call: ToolCall,
  isStateless: boolean,
): Promise<Fields> {
  const { tools, prompts = [], resources = [], templates = [], complete } = behaviour
  const kept = isStateless
    ? { ttlMs: behaviour.ttlMs ?? 0, cacheScope: behaviour.cacheScope ?? 'public' }
    : {}
  const offered = tools?.() ?? []
  const list = (entries: readonly Offered[]): Fields[] => entries.map(({ definition }) => definition)
  const named = (entries: readonly Offered[], member: string): Offered => {
    const found = entries.find(({ definition }) => definition[member] === call.params[member])
    if (found) return found
    throw new ToolError(-32_602, `Unknown ${member}`)
  }
  switch (method) {
    case 'server/discover':
      return {
        supportedVersions: [...behaviour.versions],
        capabilities: capabilitiesOf(behaviour),
        ttlMs: 0,
        cacheScope: 'public',
      }
    case 'tools/list':
      return { tools: list(offered), ...kept }
    case 'tools/call':
      return named(offered, 'name').answer(call)
    case 'prompts/list':
      return { prompts: list(prompts), ...kept }
    case 'prompts/get':
      return named(prompts, 'name').answer(call)
    case 'resources/list':
      return { resources: list(resources), ...kept }
    case 'resources/templates/list':
      return { resourceTemplates: list(templates), ...kept }
    case 'resources/read': {
      const found =
        resources.find(({ definition }) => definition['uri'] === call.params['uri']) ?? templates[0]
      if (!found) throw new ToolError(-32_602, 'Resource not found', { uri: call.params['uri'] })
      return { ...(await found.answer(call)), ...kept }
    }
    case 'completion/complete':
      if (complete) return { completion: complete(call.params) }
      break
    case 'ping':
      return {}
  }
  throw new ToolError(-32_601, 'Method not found')
}

async function bodyOf(request: IncomingMessage): Promise<Fields> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  try {
    return fieldsOf(JSON.parse(Buffer.concat(chunks).toString()))
  } catch {
    return {}
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** A tool that answers with a text. */
export function textTool(definition: Fields, answer: (call: ToolCall) => string | Promise<string>): Offered {
  return {
    definition: { inputSchema: { type: 'object' }, ...definition },
    answer: async (call) => ({ content: [{ type: 'text', text: await answer(call) }] }),
  }
}
