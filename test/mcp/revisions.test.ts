import { textTool, ToolError } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, plainConfiguration, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, beginSession, listed, startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'

const META = 'io.modelcontextprotocol/'
const SITE = 'https://console.example'
/** What a server of 2026-07-28 asks of its client, and the state that it wants back. */
const ASKED = {
  resultType: 'input_required',
  inputRequests: { name: { method: 'elicitation/create', params: { message: 'Your name?' } } },
  requestState: 'opaque ünit',
}

let fixture: Fixture
let present: TestMcpServer
let past: TestMcpServer
let free = Promise.withResolvers<void>()
beforeAll(async () => {
  const go = textTool({ name: 'go', description: 'goes' }, () => 'went')
  present = await startMcpServer({
    name: 'present',
    versions: ['2026-07-28'],
    tools: () => [
      go,
      {
        definition: { name: 'ask', description: 'asks', inputSchema: { type: 'object' } },
        answer: ({ params }) => (params['inputResponses'] ? { content: [] } : ASKED),
      },
      textTool({ name: 'wait', description: 'waits' }, async () => {
        await free.promise
        return 'done'
      }),
      textTool({ name: 'fail', description: 'fails' }, () => {
        throw new ToolError(-32_050, 'no luck')
      }),
      {
        definition: { name: 'wrong', description: 'reports', inputSchema: { type: 'object' } },
        answer: () => ({ content: [], isError: true }),
      },
      {
        definition: { name: 'odd', description: 'is odd', inputSchema: { type: 'object' } },
        answer: () => ({ resultType: 'task' }),
      },
    ],
    prompts: [{ definition: { name: 'ask' }, answer: () => ASKED }],
    resources: [{ definition: { uri: 'file:///a', name: 'a' }, answer: () => ({ contents: [] }) }],
    ttlMs: 60_000,
  })
  past = await startMcpServer({ name: 'past', versions: ['2025-11-25'], tools: () => [go] })
  fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    return {
      ...plain,
      options: { cors: { origins: [SITE] } },
      mcp: {
        servers: [
          { name: 'present', url: present.url, price: { call: 0.001 } },
          { name: 'past', url: past.url, era: '2025-11-25' },
        ],
        toolsets: [
          { name: 'all', tools: ['*.*'], groups: ['default'] },
          { name: 'none', tools: ['none.*'], groups: ['others'] },
        ],
      },
      users: [
        ...plain.users,
        ADMIN_USER,
        user(4, 'bob', [
          token('bob', { model_limits_enabled: true, model_limits: 'another' }),
          token('one', { rate_limit: { parallel: 1 } }),
        ]),
      ],
    }
  })
})
afterAll(async () => {
  free.resolve()
  await fixture?.close()
  await Promise.all([present?.close(), past?.close()])
})

const ask = (key: string, method: string, params = {}, options = {}) =>
  askMcp(fixture.gateway.url, key, method, params, options)
const go = (name: string, key = 'ann', options = {}) =>
  ask(key, 'tools/call', { name, arguments: {} }, options)
const quotaOf = async (id: unknown): Promise<unknown> =>
  (await manage<{ quota: number }>(fixture.gateway.url, ADMIN, `GET /api/log/${String(id)}`)).data.quota

test('what a server requires of its client, the answers and the state pass unchanged, and cost nothing before the result', async () => {
  const asking = await go('present_ask', 'ann', {
    meta: { [`${META}clientCapabilities`]: { elicitation: {} } },
  })
  expect(asking.message.result).toMatchObject(ASKED)
  await expect.poll(() => quotaOf(asking.headers['x-request-id'])).toBe(0)
  const given = {
    name: 'present_ask',
    arguments: {},
    inputResponses: { name: { action: 'accept', content: { name: 'Ann' } } },
    requestState: ASKED.requestState,
  }
  const answered = await ask('ann', 'tools/call', given)
  expect(answered.message.result).toMatchObject({ resultType: 'complete', content: [] })
  const { inputResponses, requestState } = present.received('tools/call').at(-1)?.params ?? {}
  expect({ inputResponses, requestState }).toEqual({
    inputResponses: given.inputResponses,
    requestState: ASKED.requestState,
  })
  await expect.poll(() => quotaOf(answered.headers['x-request-id'])).toBe(500)
})

test.each(['2025-11-25', '2025-06-18'])(
  'a server that requires input of a client of %s has failed, and costs nothing',
  async (version) => {
    const session = await beginSession(fixture.gateway.url, 'ann', version)
    const asking = await session.ask('tools/call', { name: 'present_ask', arguments: {} })
    expect(asking.message.result).toMatchObject({
      isError: true,
      _meta: { 'sluice/code': 'server_answer' },
    })
    const path = `GET /api/log/${String(asking.headers['x-request-id'])}` as const
    await expect
      .poll(async () => (await manage(fixture.gateway.url, ADMIN, path)).data)
      .toMatchObject({ quota: 0, reason: 'failed', error: { code: 'server_answer' } })
    const prompt = await session.ask('prompts/get', { name: 'present_ask' })
    expect(prompt.message.error).toMatchObject({ code: -32_603, data: { code: 'server_answer' } })
  },
)

test('a server is told the capabilities of a client of 2026-07-28, and of others none', async () => {
  const declared = { elicitation: { form: {} }, sampling: {} }
  const trace = { tracestate: 'a=1', baggage: 'b=2' }
  await go('present_go', 'ann', { meta: { [`${META}clientCapabilities`]: declared, ...trace } })
  const metaOf = (): unknown => present.received('tools/call').at(-1)?.params?.['_meta']
  expect(metaOf()).toMatchObject({ [`${META}clientCapabilities`]: declared, ...trace })
  const session = await beginSession(fixture.gateway.url, 'ann')
  await session.ask('tools/call', { name: 'present_go', arguments: {} })
  expect(metaOf()).toMatchObject({ [`${META}clientCapabilities`]: {}, [`${META}logLevel`]: 'info' })
  await go('past_go', 'ann', { meta: { [`${META}clientCapabilities`]: declared } })
  expect(past.received('initialize').at(-1)?.params).toMatchObject({ capabilities: {} })
})

test('no changes of lists are declared, in either revision, and a missing resource has the code of its revision', async () => {
  const { message } = await ask('ann', 'server/discover')
  expect(message.result?.['capabilities']).toBeDefined()
  expect(JSON.stringify(message)).not.toContain('listChanged')
  const url = fixture.gateway.url
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } }
  const begun = await call(
    url,
    { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    { path: '/mcp', key: 'ann' },
  )
  expect(begun.text).toContain('"tools":{')
  expect(begun.text).not.toContain('listChanged')
  const session = await beginSession(url, 'ann')
  const missing = { uri: 'file:///none' }
  expect((await session.ask('resources/read', missing)).message.error?.code).toBe(-32_002)
  expect((await ask('ann', 'resources/read', missing)).message.error?.code).toBe(-32_602)
})

test('a session that a server has forgotten is begun anew, once', async () => {
  expect((await go('past_go')).message.result).toBeDefined()
  const session = String(past.received('tools/call').at(-1)?.headers['mcp-session-id'])
  await fetch(past.url, { method: 'DELETE', headers: { 'mcp-session-id': session } })
  const before = past.received('initialize').length
  expect((await go('past_go')).message.result).toMatchObject({ content: [{ text: 'went' }] })
  expect(past.received('initialize')).toHaveLength(before + 1)
})

test('toolsets go by groups, and the models of a key restrict no tools', async () => {
  const names = listed((await ask('bob', 'tools/list')).message).map(({ name }) => name)
  expect(names).toContain('present_go')
  expect((await ask('bob', 'tools/list', {}, { path: '/mcp/none' })).status).toBe(404)
  expect((await go('present_go', 'bob')).message.result).toBeDefined()
})

test('a call of a tool counts as a parallel call', async () => {
  const waiting = go('present_wait', 'one')
  await expect
    .poll(() => present.received('tools/call').some(({ params }) => params?.['name'] === 'wait'))
    .toBe(true)
  expect((await go('present_go', 'one')).message.error).toMatchObject({
    code: 429,
    data: { code: 'rate_limited' },
  })
  expect((await ask('one', 'tools/list')).status).toBe(200)
  free.resolve()
  expect((await waiting).message.result).toMatchObject({ content: [{ text: 'done' }] })
})

test('idempotency keys and headers with limits are not for tools', async () => {
  const before = present.received('tools/call').length
  const headers = { 'idempotency-key': 'once' }
  const answers = [await go('present_go', 'bob', { headers }), await go('present_go', 'bob', { headers })]
  expect(present.received('tools/call')).toHaveLength(before + 2)
  for (const answer of answers) {
    const given = Object.keys(answer.headers)
    expect(given.filter((name) => /ratelimit|idempotency|gateway-cache/.test(name))).toEqual([])
  }
})

test('pages of options.cors.origins may send the headers of both revisions, and see the session', async () => {
  const asked = 'mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, mcp-param-region'
  const preflight = await fetch(`${fixture.gateway.url}/mcp`, {
    method: 'OPTIONS',
    headers: {
      origin: SITE,
      'access-control-request-method': 'POST',
      'access-control-request-headers': asked,
    },
  })
  const allowed = (preflight.headers.get('access-control-allow-headers') ?? '').toLowerCase()
  for (const name of asked.split(', ').slice(0, 4)) expect(allowed).toContain(name)
  const answer = await ask('ann', 'tools/list', {}, { headers: { origin: SITE } })
  expect(answer.status).toBe(200)
  expect(String(answer.headers['access-control-expose-headers']).toLowerCase()).toContain('mcp-session-id')
})

test('metrics count calls of tools by their outcome', async () => {
  for (const name of ['fail', 'wrong', 'odd']) await go(`present_${name}`)
  const page = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
  const counted = Object.fromEntries(
    [...page.matchAll(/^sluice_mcp_calls_total\{server="present",outcome="(\w+)"\} (\d+)$/gm)].map(
      ([, outcome, count]) => [outcome, Number(count) > 0],
    ),
  )
  expect(counted).toEqual({ ok: true, tool_error: true, error: true, failed: true, refused: true })
})
