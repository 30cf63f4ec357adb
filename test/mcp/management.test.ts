import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ADMIN, ADMIN_USER, plainConfiguration, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, listed, startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const SECRET = 'a-secret-that-nothing-shows'
const FILED = 'a-secret-of-the-file'

let fixture: Fixture
let server: TestMcpServer
beforeAll(async () => {
  server = await startMcpServer({
    name: 'tools',
    versions: ['2026-07-28'],
    tools: () => [
      textTool({ name: 'read', description: 'reads' }, () => 'content'),
      textTool({ name: 'write', description: 'writes' }, () => 'done'),
    ],
    cacheScope: 'private',
  })
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    users: [
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(4, 'bob', [token('bob')]),
      ADMIN_USER,
    ],
    mcp: {
      servers: [{ name: 'filed', url: server.url, auth: 'header', headers: { 'x-filed': FILED } }],
    },
  }))
})
afterAll(async () => {
  await fixture?.close()
  await server?.close()
})

type Shown = Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string }
const asAdmin = <Data = unknown>(request: Parameters<typeof manage>[2], body?: Record<string, unknown>) =>
  manage<Data>(fixture.gateway.url, ADMIN, request, body)
const names = async (key = 'ann', path = '/mcp') =>
  listed((await askMcp(fixture.gateway.url, key, 'tools/list', {}, { path })).message).map(({ name }) => name)
const added = (more: Record<string, unknown> = {}) => ({ name: 'added', url: server.url, ...more })

test('only administrators may see or change servers and toolsets', async () => {
  for (const [request, body] of [
    ['GET /api/mcp/servers', undefined],
    ['POST /api/mcp/servers', added()],
    ['PUT /api/mcp/servers', added()],
    ['DELETE /api/mcp/servers/filed', undefined],
    ['GET /api/mcp/toolsets', undefined],
    ['POST /api/mcp/toolsets', { name: 'a', tools: ['*.*'] }],
    ['PUT /api/mcp/toolsets', { name: 'a', tools: ['*.*'] }],
    ['DELETE /api/mcp/toolsets/a', undefined],
    ['GET /api/mcp/tools', undefined],
    ['POST /api/mcp/approve', { server: 'filed', tool: 'read', digest: 'd' }],
  ] as const)
    expect((await manage(fixture.gateway.url, ANN, request, body)).status, request).toBe(403)
})

test('servers of gateway.yaml are listed with their state and revision, and cannot be changed over HTTP', async () => {
  await names()
  const { data } = await asAdmin<Shown[]>('GET /api/mcp/servers')
  expect(data).toEqual([
    {
      name: 'filed',
      url: server.url,
      declared_era: 'auto',
      era: '2026-07-28',
      state: 'ok',
      auth: 'header',
      headers: { 'x-filed': '***' },
      token_url: null,
      client_id: null,
      client_secret: null,
      scope: null,
      timeout: 60_000,
      list_ttl: 60_000,
      most_answer: 10_485_760,
      price: { call: '0', tools: {} },
      rate_limit: { requests: 0, window: 60_000 },
      approve: 'first',
      managed: true,
      managed_by: 'gateway.yaml',
      version: expect.stringMatching(/^[0-9a-f]{16}$/),
    },
  ])
  for (const [request, body] of [
    ['PUT /api/mcp/servers', { name: 'filed', url: server.url }],
    ['DELETE /api/mcp/servers/filed', undefined],
  ] as const) {
    const refused = await asAdmin(request, body)
    expect([refused.status, refused.body['code']], request).toEqual([409, 'managed_by_file'])
  }
})

test('a server that is added over HTTP serves the next list, and none after its removal', async () => {
  const made = await asAdmin<Shown>(
    'POST /api/mcp/servers',
    added({ price: { call: 0.001, tools: { read: '0.01' } } }),
  )
  expect([made.status, made.data]).toMatchObject([
    200,
    { name: 'added', managed: false, managed_by: '', price: { call: '0.001', tools: { read: '0.01' } } },
  ])
  expect(await names()).toEqual(['added_read', 'added_write', 'filed_read', 'filed_write'])
  await fixture.gateway.restart()
  expect(await names()).toContain('added_read')
  const changed = await asAdmin<Shown>(
    'PUT /api/mcp/servers',
    added({ approve: 'always', version: made.data.version }),
  )
  expect([changed.status, changed.data]).toMatchObject([200, { approve: 'always', price: { call: '0' } }])
  const late = await asAdmin('PUT /api/mcp/servers', added({ version: made.data.version }))
  expect([late.status, late.body['code']]).toEqual([409, 'changed_meanwhile'])
  expect((await asAdmin('DELETE /api/mcp/servers/added')).status).toBe(200)
  expect(await names()).toEqual(['filed_read', 'filed_write'])
  expect((await asAdmin('DELETE /api/mcp/servers/added')).status).toBe(404)
})

test('a server or a toolset that gateway.yaml would refuse is refused over HTTP with the same message', async () => {
  for (const [request, body, message] of [
    [
      'POST /api/mcp/servers',
      { name: 'my_tools', url: 'http://a/mcp' },
      'name: expected a name of 1 to 32 lowercase',
    ],
    ['POST /api/mcp/servers', { name: 'a', url: 'http://0xa9fea9fe/' }, "not of a cloud's metadata service"],
    [
      'POST /api/mcp/servers',
      {
        name: 'a',
        url: 'http://a',
        auth: 'oauth_client',
        token_url: 'http://169.254.169.254/',
        client_id: 'i',
        client_secret: 's',
      },
      'token_url: expected an http:// or https:// URL',
    ],
    ['POST /api/mcp/servers', { name: 'a', command: 'sh', url: 'http://a' }, 'command: unknown key'],
    ['POST /api/mcp/servers', { name: 'filed', url: 'http://a' }, 'there is a server "filed" already'],
    ['POST /api/mcp/toolsets', { name: 'a', tools: ['read'] }, 'tools[0]: expected a pattern SERVER.NAME'],
    ['POST /api/mcp/toolsets', { name: 'a' }, 'tools: expected a list of at least one pattern SERVER.NAME'],
  ] as const) {
    const refused = await asAdmin(request, body)
    expect([refused.status, refused.message]).toEqual([400, expect.stringContaining(message)])
  }
})

test('the secrets of a server are shown as ***, which keeps them at the same address alone', async () => {
  const header = { auth: 'header', headers: { 'x-secret': SECRET } }
  expect((await asAdmin<Shown>('POST /api/mcp/servers', added(header))).data).toMatchObject({
    headers: { 'x-secret': '***' },
  })
  const hidden = { auth: 'header', headers: { 'x-secret': '***' } }
  expect((await asAdmin('PUT /api/mcp/servers', added({ ...hidden, timeout: '5s' }))).status).toBe(200)
  server.seen.length = 0
  await names()
  expect(server.received('tools/list').map(({ headers }) => headers['x-secret'])).toContain(SECRET)
  const moved = await asAdmin('PUT /api/mcp/servers', {
    ...added(hidden),
    url: 'http://elsewhere.example/mcp',
  })
  expect([moved.status, moved.message]).toEqual([
    400,
    expect.stringContaining('headers: expected it in full'),
  ])

  const oauth = {
    auth: 'oauth_client',
    token_url: 'http://tokens.example/',
    client_id: 'id',
    client_secret: SECRET,
  }
  expect((await asAdmin('PUT /api/mcp/servers', added(oauth))).status).toBe(200)
  const kept = { ...oauth, client_secret: '***' }
  expect((await asAdmin('PUT /api/mcp/servers', added(kept))).status).toBe(200)
  const other = await asAdmin('PUT /api/mcp/servers', added({ ...kept, token_url: 'http://other.example/' }))
  expect([other.status, other.message]).toEqual([
    400,
    expect.stringContaining('client_secret: expected it in full'),
  ])

  const { data: log } = await asAdmin('GET /api/audit?page_size=100')
  const { data: list } = await asAdmin('GET /api/mcp/servers')
  const told = JSON.stringify([log, list])
  expect(told).toContain('mcp_server.create')
  expect(told).not.toContain(SECRET)
  expect(told).not.toContain(FILED)
  await asAdmin('DELETE /api/mcp/servers/added')
})

test('a toolset that is added over HTTP restricts the next list, and its removal gives nobody every tool', async () => {
  expect(await names('bob')).toEqual(['filed_read', 'filed_write'])
  const made = await asAdmin<Shown>('POST /api/mcp/toolsets', {
    name: 'reading',
    tools: ['*.read'],
    users: ['ann'],
  })
  expect([made.status, made.data]).toMatchObject([
    200,
    { name: 'reading', tools: ['*.read'], groups: null, users: ['ann'], managed: false, warnings: [] },
  ])
  expect(await names('ann')).toEqual(['filed_read'])
  expect(await names('bob')).toEqual([])
  const changed = await asAdmin<Shown>('PUT /api/mcp/toolsets', { name: 'reading', tools: ['filed.*'] })
  expect([changed.status, changed.data]).toMatchObject([200, { users: null, tools: ['filed.*'] }])
  expect(await names('bob', '/mcp/reading')).toEqual(['filed_read', 'filed_write'])
  expect((await asAdmin<Shown[]>('GET /api/mcp/toolsets')).data.map(({ name }) => name)).toEqual(['reading'])
  expect((await asAdmin('DELETE /api/mcp/toolsets/reading')).status).toBe(200)
  expect(await names('bob')).toEqual([])
  await fixture.gateway.restart()
  expect(await names('bob')).toEqual([])
})

test('a key has those of its toolsets alone that it names, and a toolset that a key names is not deleted', async () => {
  const asAnn = <Data = unknown>(request: Parameters<typeof manage>[2], body?: Record<string, unknown>) =>
    manage<Data>(fixture.gateway.url, ANN, request, body)
  for (const toolset of [
    { name: 'reading', tools: ['filed.read'] },
    { name: 'all', tools: ['*.*'] },
    { name: 'foreign', tools: ['*.*'], users: ['bob'] },
  ])
    expect((await asAdmin('POST /api/mcp/toolsets', toolset)).status).toBe(200)
  const [key] = (await asAnn<{ items: { id: number }[] }>('GET /api/token/')).data.items
  const restrict = (toolsets: string[]) =>
    asAnn<{ toolsets: string[] }>('PUT /api/token/', { id: key?.id, toolsets })
  expect((await restrict(['nowhere'])).message).toBe('toolsets: there is no toolset "nowhere"')
  expect((await restrict(['reading'])).data.toolsets).toEqual(['reading'])
  expect(await names('ann')).toEqual(['filed_read'])
  const { message } = await askMcp(fixture.gateway.url, 'ann', 'tools/call', { name: 'filed_write' })
  expect(message.error).toMatchObject({ code: -32_602, message: 'Unknown tool: filed_write' })
  expect((await askMcp(fixture.gateway.url, 'ann', 'tools/list', {}, { path: '/mcp/all' })).status).toBe(404)
  expect(await names('bob')).toEqual(['filed_read', 'filed_write'])
  const used = await asAdmin('DELETE /api/mcp/toolsets/reading')
  expect([used.status, used.body['code']]).toEqual([409, 'in_use'])
  await restrict(['foreign'])
  expect(await names('ann')).toEqual([])
  await restrict([])
  expect(await names('ann')).toEqual(['filed_read', 'filed_write'])
  for (const name of ['reading', 'all', 'foreign'])
    expect((await asAdmin(`DELETE /api/mcp/toolsets/${name}`)).status).toBe(200)
})

test('changes of servers and toolsets are in the audit log', async () => {
  const actions = async (kind: string) => {
    const { data } = await asAdmin<{ items: { action: string; object: { name: string } }[] }>(
      `GET /api/audit?kind=${kind}`,
    )
    return data.items.map(({ action, object }) => `${action} ${object.name}`)
  }
  expect((await actions('mcp_toolset')).slice(-3)).toEqual([
    'mcp_toolset.delete reading',
    'mcp_toolset.update reading',
    'mcp_toolset.create reading',
  ])
  expect(new Set(await actions('mcp_server'))).toEqual(
    new Set(['mcp_server.create added', 'mcp_server.update added', 'mcp_server.delete added']),
  )
})

test('the answer to a toolset that names no server or group warns of it', async () => {
  const misspelt = { name: 'misspelt', tools: ['flied.*', 'filed.*'], groups: ['nope'] }
  expect((await asAdmin<Shown>('POST /api/mcp/toolsets', misspelt)).data).toMatchObject({
    warnings: ['there is no group nope', 'there is no server for flied.*'],
  })
  expect((await asAdmin('DELETE /api/mcp/toolsets/misspelt')).status).toBe(200)
})
