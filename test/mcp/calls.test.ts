import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ADMIN, ADMIN_USER, plainConfiguration, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, beginSession, listed, startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'

const SEARCH = {
  name: 'search',
  description: 'Finds pages',
  inputSchema: { type: 'object', properties: { q: { type: 'string' } } },
}

let fixture: Fixture
let web: TestMcpServer
let old: TestMcpServer
beforeAll(async () => {
  const search = textTool(SEARCH, ({ arguments: { q } }) => `found ${String(q)}`)
  web = await startMcpServer({
    name: 'web',
    versions: ['2026-07-28'],
    tools: () => [
      search,
      textTool({ name: 'free', description: 'costs nothing' }, () => 'free'),
      {
        definition: { name: 'broken', description: 'fails', inputSchema: { type: 'object' } },
        answer: () => ({ content: [{ type: 'text', text: 'no luck' }], isError: true }),
      },
    ],
    ttlMs: 60_000,
  })
  old = await startMcpServer({
    name: 'old',
    versions: ['2025-11-25', '2025-06-18'],
    tools: () => [
      search,
      textTool({ name: 'slow', description: 'reports progress' }, (given) => {
        given.notify('notifications/progress', { progress: 1, total: 2, message: 'half' })
        return 'done'
      }),
    ],
  })
  fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    return {
      ...plain,
      mcp: {
        servers: [
          { name: 'web', url: web.url, price: { call: 0.001, tools: { search: 0.01, free: 0 } } },
          { name: 'old', url: old.url },
          { name: 'tight', url: web.url, rate_limit: { requests: 1, window: '10m' } },
        ],
      },
      users: [
        ...plain.users,
        ADMIN_USER,
        user(4, 'bob', [token('bob', { remain_quota: 7_000 })]),
        user(6, 'dan', [token('dan', { remain_quota: 50_000 })]),
        user(5, 'cy', [token('cy', { rate_limit: { requests: 1 } })]),
      ],
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  await Promise.all([web?.close(), old?.close()])
})

const ask = (key: string, method: string, params = {}, options = {}) =>
  askMcp(fixture.gateway.url, key, method, params, options)
const callTool = (key: string, name: string, given = {}, options = {}) =>
  ask(key, 'tools/call', { name, arguments: given }, options)
const detail = async (id: unknown) =>
  (await manage(fixture.gateway.url, ADMIN, `GET /api/log/${String(id)}`)).data

test('the tools of all servers are one list in the order of their names', async () => {
  const { status, message } = await ask('ann', 'tools/list')
  expect(status).toBe(200)
  expect(listed(message).map(({ name }) => name)).toEqual([
    'old_search',
    'old_slow',
    'tight_broken',
    'tight_free',
    'tight_search',
    'web_broken',
    'web_free',
    'web_search',
  ])
  expect(message.result).toMatchObject({ resultType: 'complete', cacheScope: 'private' })
  expect(listed(message)[7]).toEqual({ ...SEARCH, name: 'web_search' })
})

test('a call of a tool is charged its price and has a row of kind tool', async () => {
  const answer = await callTool('ann', 'web_search', { q: 'tides' })
  expect(answer.message).toMatchObject({
    id: 1,
    result: { content: [{ type: 'text', text: 'found tides' }] },
  })
  const row = await detail(answer.headers['x-request-id'])
  expect(row).toMatchObject({
    kind: 'tool',
    model_name: 'web_search',
    upstream_model: 'search',
    channel: 'web',
    quota: 5_000,
    reason: 'complete',
    cost: [{ kind: 'tool_call', count: 1, price_usd: '0.01', quota: '5000' }],
  })
})

test('the price of the server applies to a tool without its own, also if the tool reports an error', async () => {
  const answer = await callTool('ann', 'web_broken')
  expect(answer.message.result).toMatchObject({ isError: true })
  expect(await detail(answer.headers['x-request-id'])).toMatchObject({ quota: 500, reason: 'complete' })
  const free = await callTool('ann', 'web_free')
  expect(await detail(free.headers['x-request-id'])).toMatchObject({ quota: 0, reason: 'complete' })
})

test('a key without quota for the price is refused before the server is asked', async () => {
  expect((await callTool('bob', 'web_search')).message.result).toBeDefined()
  const before = web.received('tools/call').length
  const { status, message } = await callTool('bob', 'web_search', {}, { id: 'second' })
  expect(status).toBe(200)
  expect(message).toMatchObject({
    id: 'second',
    error: { code: 403, data: { code: 'insufficient_quota', needed: 5_000, left: 2_000 } },
  })
  expect(web.received('tools/call').length).toBe(before)
})

test('the rate limit of a key counts calls of tools, but not lists', async () => {
  await ask('cy', 'tools/list')
  expect((await callTool('cy', 'web_free')).message.result).toBeDefined()
  const { status, headers, message } = await callTool('cy', 'web_free')
  expect(status).toBe(200)
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  expect(message).toMatchObject({ error: { code: 429, data: { code: 'rate_limited' } } })
})

test('clients and servers of different revisions work together', async () => {
  const session = await beginSession(fixture.gateway.url, 'ann')
  const searched = await session.ask('tools/call', { name: 'web_search', arguments: { q: 'a' } }, 7)
  expect(searched.message).toEqual({
    jsonrpc: '2.0',
    id: 7,
    result: { content: [{ type: 'text', text: 'found a' }] },
  })
  const answer = await callTool('ann', 'old_slow', {}, { meta: { progressToken: 'mine' } })
  expect(answer.notifications).toEqual([
    {
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progress: 1, total: 2, message: 'half', progressToken: 'mine' },
    },
  ])
  expect(answer.message.result).toMatchObject({ resultType: 'complete', content: [{ text: 'done' }] })
})

test("neither the client's key nor its session reaches a server", async () => {
  const session = await beginSession(fixture.gateway.url, 'ann')
  await session.ask('tools/call', { name: 'old_search', arguments: { q: 'b' } })
  await session.ask('tools/call', { name: 'web_search', arguments: { q: 'b' } })
  for (const { seen } of [web, old]) {
    expect(JSON.stringify(seen)).not.toContain('sk-ann')
    expect(JSON.stringify(seen)).not.toContain(session.id)
  }
})

test('many calls at once spend what the quota pays for, and nothing more', async () => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, id) => callTool('dan', 'web_search', { q: 'x' }, { id })),
  )
  const served = answers.filter(({ message }) => message.result !== undefined)
  expect(served.length).toBe(10)
  const others = answers.filter((one) => !served.includes(one))
  const codes = others.map(
    ({ message }) => (message.error?.data as { code: string } | undefined)?.code ?? 'none',
  )
  // Calls that arrive after the last charge are refused by their key's status.
  expect(codes.filter((code) => code !== 'insufficient_quota' && code !== 'token_exhausted')).toEqual([])
})

test('the rate limit of a server counts the calls of each key', async () => {
  expect((await callTool('ann', 'tight_free')).message.result).toBeDefined()
  const { headers, message } = await callTool('ann', 'tight_search')
  expect(message.error).toMatchObject({ code: 429, data: { code: 'rate_limited' } })
  expect(Number(headers['retry-after'])).toBeGreaterThan(60)
  expect((await callTool('bob', 'tight_free')).message.result).toBeDefined()
  expect((await callTool('ann', 'web_free')).message.result).toBeDefined()
})
