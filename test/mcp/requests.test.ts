import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { plainConfiguration, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import {
  askMcp,
  beginSession,
  postMcp,
  startMcpServer,
  statelessRequest,
  type TestMcpServer,
} from '../fixtures/mcp.ts'

let fixture: Fixture
let server: TestMcpServer
let url: string
beforeAll(async () => {
  server = await startMcpServer({
    name: 'one',
    versions: ['2026-07-28'],
    tools: () => [
      textTool({ name: 'echo', description: 'echoes' }, ({ arguments: given }) => JSON.stringify(given)),
    ],
    ttlMs: 60_000,
  })
  fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    return {
      ...plain,
      users: [...plain.users, user(4, 'bob', [token('bob')])],
      mcp: { servers: [{ name: 'one', url: server.url }] },
    }
  })
  ;({ url } = fixture.gateway)
})
afterAll(async () => {
  await fixture?.close()
  await server?.close()
})

const post = (body: object | string, headers: Record<string, string> = {}) =>
  postMcp(url, body, { key: 'ann', headers })

test('a client without a valid key gets a challenge without metadata', async () => {
  const { body, headers } = statelessRequest('tools/list')
  for (const key of [undefined, 'nobody']) {
    const answer = await postMcp(url, body, { headers, ...(key !== undefined && { key }) })
    expect(answer.status).toBe(401)
    expect(answer.headers['www-authenticate']).toBe('Bearer')
  }
  const answer = await postMcp(url, body, { headers: { ...headers, 'x-api-key': 'sk-ann' } })
  expect(answer.status).toBe(200)
})

test('other methods than POST are not allowed', async () => {
  for (const method of ['GET', 'DELETE']) {
    const answer = await call(url, undefined, { path: '/mcp', method, key: 'ann' })
    expect(answer.status).toBe(405)
    expect(answer.headers.allow).toBe('POST')
  }
})

test.each([
  ['no JSON', '{', -32_700],
  ['a batch', '[]', -32_600],
  ['no object', '1', -32_600],
  ['another version of JSON-RPC', { jsonrpc: '1.0', id: 1, method: 'ping' }, -32_600],
  ['an id of null', { jsonrpc: '2.0', id: null, method: 'ping' }, -32_600],
  ['an id with a fraction', { jsonrpc: '2.0', id: 1.5, method: 'ping' }, -32_600],
  ['an answer', { jsonrpc: '2.0', id: 1, result: {} }, -32_600],
  ['a name in other case', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"a"}}', -32_600],
  [
    'a name twice',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}',
    -32_600,
  ],
])('%s is refused', async (_, body, code) => {
  const answer = await post(body)
  expect(answer.status).toBe(400)
  expect(answer.message.error?.code).toBe(code)
})

test.each([
  ['tools/list', { 'mcp-method': 'prompts/list' }, {}, -32_020],
  ['tools/call', { 'mcp-name': 'other' }, {}, -32_020],
  ['tools/list', { 'mcp-protocol-version': '2025-11-25' }, {}, -32_020],
  ['tools/list', {}, { 'io.modelcontextprotocol/clientCapabilities': undefined }, -32_602],
  ['tools/list', {}, { 'io.modelcontextprotocol/protocolVersion': undefined }, -32_602],
])(
  'a request for %s whose headers are %o and whose _meta is changed by %o is refused',
  async (method, headers, meta, code) => {
    const answer = await askMcp(url, 'ann', method, method === 'tools/call' ? { name: 'one_echo' } : {}, {
      headers,
      meta,
    })
    expect(answer.status).toBe(400)
    expect(answer.message).toMatchObject({ id: 1, error: { code } })
  },
)

test('an unknown revision gets the known ones, and an unknown method 404', async () => {
  const version = '2027-01-01'
  const { status, message } = await askMcp(
    url,
    'ann',
    'tools/list',
    {},
    {
      headers: { 'mcp-protocol-version': version },
      meta: { 'io.modelcontextprotocol/protocolVersion': version },
    },
  )
  expect(status).toBe(400)
  expect(message.error).toMatchObject({
    code: -32_022,
    data: { supported: ['2026-07-28', '2025-11-25', '2025-06-18'], requested: version },
  })
  const others = [
    'initialize',
    'ping',
    'resources/subscribe',
    'subscriptions/listen',
    'no/method',
    'constructor',
  ]
  for (const method of others) {
    const answer = await askMcp(url, 'ann', method)
    expect(answer.status).toBe(404)
    expect(answer.message.error?.code).toBe(-32_601)
  }
})

test('a session belongs to its key', async () => {
  const session = await beginSession(url, 'ann', '2024-11-05')
  expect((await session.ask('ping')).message).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  expect((await session.ask('logging/setLevel', { level: 'info' })).message.result).toEqual({})
  expect((await session.ask('resources/subscribe')).message.error?.code).toBe(-32_601)
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const headers = { 'mcp-session-id': session.id, 'mcp-protocol-version': '2025-11-25' }
  expect((await post(list, headers)).status).toBe(200)
  expect((await post(list, { 'mcp-protocol-version': '2025-11-25' })).status).toBe(400)
  expect((await postMcp(url, list, { key: 'bob', headers })).status).toBe(404)
  expect((await post(list, { ...headers, 'mcp-session-id': `${session.id}x` })).status).toBe(404)
  expect((await session.notify('notifications/initialized')).status).toBe(202)
  await fixture.gateway.restart()
  expect((await post(list, headers)).status).toBe(200)
})

test('pages of other sites are refused', async () => {
  const { body, headers } = statelessRequest('tools/list')
  const from = (origin: string) => post(body, { ...headers, origin, host: 'evil.example' })
  expect((await from('http://evil.example')).status).toBe(403)
  expect((await from('null')).status).toBe(403)
  expect((await from('http://localhost:1234')).status).toBe(200)
})

test('arguments keep their digits and their order', async () => {
  const given =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one_echo","arguments":{"b":12345678901234567890,"a":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
  const { headers } = statelessRequest('tools/call', { name: 'one_echo' })
  const answer = await post(given, headers)
  expect(answer.status).toBe(200)
  const [seen] = server.received('tools/call')
  expect(Object.keys(seen?.params?.['arguments'] as object)).toEqual(['b', 'a'])
})
