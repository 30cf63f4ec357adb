import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type McpServerBehaviour, textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { send } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, plainConfiguration, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, listed, startMcpServer, statelessRequest, type TestMcpServer } from '../fixtures/mcp.ts'

const META = 'io.modelcontextprotocol/'
const DISCOVERED = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: 'public',
}
const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'raw', version: '1' },
}
const ONE_TOOL = {
  resultType: 'complete',
  tools: [{ name: 'go', description: 'goes', inputSchema: { type: 'object' } }],
  ttlMs: 60_000,
  cacheScope: 'public',
}

/** A server that lists one tool and answers calls of it in its own way. `hold`: delays what it speaks. */
async function rawServer(
  onCall: RequestListener,
  hold: () => Promise<void> | undefined = () => undefined,
): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { id, method } = JSON.parse(body) as { id: number; method?: string }
      if (method === undefined || method === 'notifications/initialized')
        return void response.writeHead(202).end()
      if (method === 'tools/call') {
        request.headers['x-id'] = String(id)
        onCall(request, response)
        return
      }
      const result =
        method === 'server/discover' ? DISCOVERED : method === 'initialize' ? INITIALIZED : ONE_TOOL
      const answer = (): void => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      }
      const held = method === 'server/discover' ? hold() : undefined
      if (held) void held.then(answer)
      else answer()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, server }
}

const json =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
const answering =
  (make: (id: number) => object): RequestListener =>
  (request, response) =>
    json(200, JSON.stringify(make(Number(request.headers['x-id']))))(request, response)

const PRETENDING = answering((id) => {
  const meta = { 'sluice/code': 'server_auth', 'example.com/a': 1 }
  return { jsonrpc: '2.0', id, result: { content: [], isError: true, _meta: meta } }
})

/** What servers do to a call of their tool, with the code that the client gets. */
const FAILURES: Readonly<Record<string, readonly [RequestListener, string]>> = {
  dropped: [(request) => void request.socket.destroy(), 'server_unavailable'],
  status500: [json(500, 'secret words'), 'server_unavailable'],
  status401: [json(401, '{"error":"secret words"}'), 'server_auth'],
  redirect: [json(307, '', { location: 'http://169.254.169.254/' }), 'server_answer'],
  html: [json(200, '<html>secret words'), 'server_answer'],
  another: [answering((id) => ({ jsonrpc: '2.0', id: id + 1, result: { content: [] } })), 'server_answer'],
  unknown: [answering((id) => ({ jsonrpc: '2.0', id, result: { resultType: 'task' } })), 'server_answer'],
  deep: [
    (request, response) => {
      const nested = `${'['.repeat(2_000)}${']'.repeat(2_000)}`
      const result = `{"content":[],"structuredContent":{"a":${nested}}}`
      json(200, `{"jsonrpc":"2.0","id":${String(request.headers['x-id'])},"result":${result}}`)(
        request,
        response,
      )
    },
    'server_answer',
  ],
  large: [
    answering((id) => ({
      jsonrpc: '2.0',
      id,
      result: { content: [{ type: 'text', text: 'x'.repeat(20_000) }] },
    })),
    'server_answer',
  ],
  flooding: [
    (request, response) => {
      const message = { jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x'.repeat(1_000) } }
      const answer = { jsonrpc: '2.0', id: Number(request.headers['x-id']), result: { content: [] } }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let count = 0; count < 20; count++) response.write(`data: ${JSON.stringify(message)}\n\n`)
      response.end(`data: ${JSON.stringify(answer)}\n\n`)
    },
    'server_answer',
  ],
  broken: [
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': begins\n\n', () => response.destroy())
    },
    'server_answer',
  ],
  asking: [
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end('data: {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}\n\n')
    },
    'server_answer',
  ],
  pinging: [
    (request, response) => {
      const pings = Array.from({ length: 200 }, (_, at) => ({ id: `ping${at}`, method: 'ping' }))
      const messages = [...pings, { id: Number(request.headers['x-id']), result: { content: [] } }]
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(messages.map((one) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...one })}\n\n`).join(''))
    },
    'server_answer',
  ],
  slow: [() => {}, 'server_timeout'],
}

/** Delays what the server `hesitant` speaks. */
let hesitate: () => Promise<void> | undefined = () => undefined

let fixture: Fixture
let files: TestMcpServer
let hostile: TestMcpServer
let secured: TestMcpServer
const servers: Server[] = []
const FILES: McpServerBehaviour = {
  name: 'files',
  versions: ['2025-11-25'],
  tools: () => [textTool({ name: 'read', description: 'reads' }, () => 'text')],
  prompts: [
    {
      definition: { name: 'review', arguments: [{ name: 'file' }] },
      answer: ({ arguments: { file } }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `review ${String(file)}` } }],
      }),
    },
  ],
  resources: [
    {
      definition: { uri: 'file:///a.txt', name: 'a' },
      answer: () => ({ contents: [{ uri: 'file:///a.txt', text: 'content of a' }] }),
    },
  ],
  templates: [
    {
      definition: { uriTemplate: 'file:///{name}.md', name: 'notes' },
      answer: ({ params }) => ({ contents: [{ uri: params['uri'], text: `note ${String(params['uri'])}` }] }),
    },
  ],
  complete: () => ({ values: ['a.txt'] }),
}
beforeAll(async () => {
  files = await startMcpServer(FILES)
  const schema = (mark: unknown, type = 'string') => ({
    type: 'object',
    properties: { a: { type, 'x-mcp-header': mark } },
  })
  hostile = await startMcpServer({
    name: 'hostile',
    versions: ['2026-07-28'],
    tools: () =>
      [
        { name: 'fine', inputSchema: schema('Region') },
        { name: '', inputSchema: { type: 'object' } },
        { name: 'twice', inputSchema: { type: 'object' } },
        { name: 'twice', inputSchema: { type: 'object' } },
        { name: 'line\nbreak', inputSchema: { type: 'object' } },
        { name: 'x'.repeat(121), inputSchema: { type: 'object' } },
        { name: 'list', inputSchema: ['object'] },
        { name: 'texts', inputSchema: { type: 'string' } },
        { name: 'number', inputSchema: schema('N', 'number') },
        { name: 'header', inputSchema: schema('a b') },
        { name: 'items', inputSchema: { type: 'object', items: schema('X') } },
      ].map((one) => textTool({ description: 'a tool', ...one }, () => 'called')),
  })
  secured = await startMcpServer({
    name: 'secured',
    versions: ['2026-07-28'],
    tools: () => [textTool({ name: 'go', description: 'goes' }, () => 'went')],
  })
  const raw = await Promise.all(
    Object.entries({
      ...FAILURES,
      pretending: [PRETENDING] as const,
      hesitant: [json(500, '')] as const,
    }).map(async ([name, [onCall]]) => {
      const { url, server } = await rawServer(onCall, name === 'hesitant' ? () => hesitate() : undefined)
      servers.push(server)
      return {
        name,
        url,
        price: { call: 1 },
        most_answer: 19_000,
        ...(name === 'pinging' && { era: '2025-11-25' }),
        ...(name === 'slow' && { timeout: '300ms' }),
      }
    }),
  )
  fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    return {
      ...plain,
      users: [...plain.users, ADMIN_USER, user(4, 'bob', [token('bob')]), user(5, 'eve', [token('eve')])],
      mcp: {
        servers: [
          { name: 'files', url: files.url },
          { name: 'hostile', url: hostile.url },
          {
            name: 'secured',
            url: secured.url,
            auth: 'header',
            headers: { authorization: 'Bearer of-server' },
          },
          ...raw,
        ],
        toolsets: [
          { name: 'all', tools: ['*.*'], users: ['ann'] },
          { name: 'reading', tools: ['files.r*'], users: ['bob', 'ann'] },
        ],
      },
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  await Promise.all([files?.close(), hostile?.close(), secured?.close()])
})

const ask = (key: string, method: string, params = {}, options = {}) =>
  askMcp(fixture.gateway.url, key, method, params, options)
const names = async (key: string, path = '/mcp', method = 'tools/list', member = 'tools') =>
  listed((await ask(key, method, {}, { path })).message, member).map(({ name }) => name)

test.each(Object.entries(FAILURES))(
  'a server that is %s fails the call, which costs nothing',
  async (name, [, code]) => {
    const answer = await ask('ann', 'tools/call', { name: `${name}_go`, arguments: {} })
    expect(answer.status).toBe(200)
    expect(answer.message.result).toMatchObject({ isError: true, _meta: { 'sluice/code': code } })
    expect(answer.text).toContain(name)
    expect(answer.text).not.toContain('secret words')
    const id = String(answer.headers['x-request-id'])
    const row = async () => (await manage(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)).data
    const failed = { quota: 0, reason: 'failed', kind: 'tool', channel: name, error: { code } }
    await expect.poll(row).toMatchObject(failed)
  },
)

test('a call that its client leaves before it was sent costs nothing', async () => {
  const params = { name: 'hesitant_go', arguments: {} }
  const charges = (): unknown[] =>
    databaseOf(fixture.gateway.dataDir)
      .usage()
      .filter(({ model }) => model === params.name)
      .map(({ quota, reason }) => [quota, reason])
  // After a failure, the server is asked again what it speaks.
  await ask('ann', 'tools/call', params)
  await expect.poll(charges).toEqual([[0, 'failed']])
  const [asked, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  onTestFinished(() => over.resolve())
  hesitate = () => {
    asked.resolve()
    return over.promise
  }
  const { body, headers } = statelessRequest('tools/call', params)
  const leaving = send(fixture.gateway.url, body, { path: '/mcp', key: 'ann', headers })
  await asked.promise
  leaving.destroy()
  await expect.poll(charges).toEqual([
    [0, 'failed'],
    [0, 'failed'],
  ])
})

test('a server cannot state a code of the gateway, and other members of _meta stay', async () => {
  const { message } = await ask('ann', 'tools/call', { name: 'pretending_go', arguments: {} })
  expect(message.result).toMatchObject({ isError: true, _meta: { 'example.com/a': 1 } })
  expect(message.result?.['_meta']).not.toHaveProperty('sluice/code')
})

test('tools with invalid names or schemas are left out', async () => {
  expect((await names('ann')).filter((name) => String(name).startsWith('hostile'))).toEqual(['hostile_fine'])
  const answer = await ask('ann', 'tools/call', { name: 'hostile_number', arguments: {} })
  expect(answer.message.error).toMatchObject({ code: -32_602, message: 'Unknown tool: hostile_number' })
})

test('a parameter with a header must agree with it, and the server gets the header anew', async () => {
  const params = { name: 'hostile_fine', arguments: { a: 'é' } }
  const headers = { 'mcp-param-region': '=?base64?w6k=?=' }
  expect((await ask('ann', 'tools/call', params)).message.error).toMatchObject({ code: -32_020 })
  expect((await ask('ann', 'tools/call', params, { headers: { 'mcp-param-region': 'e' } })).status).toBe(400)
  expect((await ask('ann', 'tools/call', params, { headers })).message.result).toBeDefined()
  expect(hostile.received('tools/call').at(-1)?.headers).toMatchObject({
    ...headers,
    'mcp-name': 'fine',
    'mcp-method': 'tools/call',
  })
})

test('a caller has the tools of her toolsets, and what she has not is unknown', async () => {
  expect(await names('bob')).toEqual(['files_read'])
  expect(await names('bob', '/mcp', 'prompts/list', 'prompts')).toEqual(['files_review'])
  expect(await names('eve')).toEqual([])
  expect(await names('ann', '/mcp/reading')).toEqual(['files_read'])
  const known = await ask('bob', 'tools/call', { name: 'secured_go', arguments: {} })
  const unknown = await ask('bob', 'tools/call', { name: 'secured_no', arguments: {} })
  expect(known.message.error).toEqual({ code: -32_602, message: 'Unknown tool: secured_go' })
  expect(unknown.message.error).toEqual({ code: -32_602, message: 'Unknown tool: secured_no' })
  const [foreign, missing] = [
    await ask('eve', 'tools/list', {}, { path: '/mcp/all' }),
    await ask('eve', 'tools/list', {}, { path: '/mcp/none' }),
  ]
  expect(foreign.status).toBe(404)
  const words = ({ text }: { text: string }): string => text.replace(/request id: [\w-]+/, '')
  expect(words(foreign)).toBe(words(missing))
})

test('prompts, resources and completion reach their server', async () => {
  const prompt = await ask('ann', 'prompts/get', { name: 'files_review', arguments: { file: 'a' } })
  expect(prompt.message.result).toMatchObject({ messages: [{ content: { text: 'review a' } }] })
  expect(await names('ann', '/mcp', 'resources/list', 'resources')).toEqual(['a'])
  expect(await names('bob', '/mcp', 'resources/list', 'resources')).toEqual([])
  const read = await ask('ann', 'resources/read', { uri: 'file:///a.txt' })
  expect(read.message.result).toMatchObject({
    contents: [{ text: 'content of a' }],
    cacheScope: 'private',
    ttlMs: 0,
  })
  const note = await ask('ann', 'resources/read', { uri: 'file:///b.md' })
  expect(note.message.result).toMatchObject({ contents: [{ text: 'note file:///b.md' }] })
  const none = await ask('ann', 'resources/read', { uri: 'file:///b.png' })
  expect(none.message.error).toMatchObject({ code: -32_602, data: { uri: 'file:///b.png' } })
  expect((await ask('bob', 'resources/read', { uri: 'file:///a.txt' })).message.error?.code).toBe(-32_602)
  const ref = { type: 'ref/prompt', name: 'files_review' }
  const completed = await ask('ann', 'completion/complete', { ref, argument: { name: 'file', value: 'a' } })
  expect(completed.message.result).toMatchObject({ completion: { values: ['a.txt'] } })
  expect(files.received('completion/complete')[0]?.params).toMatchObject({ ref: { name: 'review' } })
})

test("the server gets the operator's credentials and the trace of the client, and the client no header of the server", async () => {
  const meta = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01', 'com.example/a': 1 }
  const answer = await ask('ann', 'tools/call', { name: 'secured_go', arguments: {} }, { meta })
  expect(answer.message.result).toMatchObject({ content: [{ text: 'went' }] })
  const [seen] = secured.received('tools/call')
  expect(seen?.headers.authorization).toBe('Bearer of-server')
  expect(seen?.params?.['_meta']).toMatchObject({ ...meta, [`${META}clientInfo`]: { name: 'sluice' } })
  expect(JSON.stringify([answer.headers, answer.text])).not.toContain('of-server')
})
