import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { plainConfiguration, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, listed } from '../fixtures/mcp.ts'

type Tool = Readonly<Record<string, unknown>>

/** What a server answers to the request for a page of its tools; `count` is the number of requests before. */
type Pages = (cursor: string | undefined, count: number) => Readonly<Record<string, unknown>> | 'silence'

const tool = (name: string, description = ''): Tool => ({
  name,
  description,
  inputSchema: { type: 'object' },
})
const tools = (count: number, description?: string): readonly Tool[] =>
  Array.from({ length: count }, (_, n) => tool(`t${n}`, description))
/** Pages with one tool each. */
const pages =
  (count: number): Pages =>
  (cursor = '0') => {
    const next = Number(cursor) + 1
    return { tools: [tool(`p${cursor}`)], ...(next < count && { nextCursor: String(next) }) }
  }
const named = (_: unknown, count: number) => ({ tools: [tool(`n${count}`)] })
const MEBIBYTE = 1_048_576
const HOUR_MS = 3_600_000
/** The timeout of the server `late`, and the milliseconds after which it gives its lists. It answers no calls. */
const [TIMEOUT_MS, LATE_MS] = [600, 400]
/** Keys that have not yet used `late`, each for one attempt. */
const TRIES = Array.from({ length: 20 }, (_, n) => `try${n}`)

/** Servers by name, with their pages. Lists may be kept for a minute and are public unless they say otherwise. */
const SERVERS: Readonly<Record<string, Pages>> = {
  three: pages(3),
  hundred: pages(100),
  endless: pages(101),
  full: () => ({ tools: tools(2_000) }),
  crowded: () => ({ tools: tools(2_001) }),
  flooded: () => ({ tools: Array(200_000).fill(0) }),
  large: () => ({ tools: tools(5, 'x'.repeat(MEBIBYTE)) }),
  silent: () => 'silence',
  public: named,
  private: (_, count) => ({ ...named(_, count), cacheScope: 'private' }),
  mixed: (cursor, count) => ({
    ...named(cursor, count),
    ...(cursor === undefined && { nextCursor: 'last' }),
    cacheScope: cursor === undefined ? 'private' : 'public',
  }),
  fresh: (_, count) => ({ ...named(_, count), ttlMs: 0 }),
  old: named,
  lasting: () => ({ tools: tools(1), ttlMs: 600_000 }),
  late: () => ({ tools: tools(1), cacheScope: 'private' }),
  eternal: () => ({ tools: tools(1), ttlMs: 10 * HOUR_MS }),
}

let fixture: Fixture
const running: Server[] = []
/** Requests for lists by server. */
const asked = new Map<string, number>()
/** The servers whose tools were called. */
const called: string[] = []

async function serve(name: string, answer: Pages): Promise<string> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { id, method, params } = JSON.parse(body) as {
        id: number
        method: string
        params: { cursor?: string }
      }
      const reply = (result: object): void => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }))
      }
      if (method === 'notifications/initialized') return void response.writeHead(202).end()
      if (method === 'initialize')
        return reply({ protocolVersion: '2025-11-25', capabilities: { tools: {} } })
      const keeping = { ttlMs: 60_000, cacheScope: 'public' }
      if (method === 'server/discover')
        return reply({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ...keeping })
      if (method === 'tools/call') return void called.push(name)
      const count = asked.get(name) ?? 0
      asked.set(name, count + 1)
      const given = answer(params.cursor, count)
      if (given === 'silence') return
      const give = (): void => reply({ ...keeping, ...given })
      if (name === 'late') setTimeout(give, LATE_MS)
      else give()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  running.push(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

beforeAll(async () => {
  const servers = await Promise.all(
    Object.entries(SERVERS).map(async ([name, answer]) => ({
      name,
      url: await serve(name, answer),
      approve: 'never',
      ...(name === 'silent' && { timeout: '300ms' }),
      ...(name === 'late' && { timeout: `${TIMEOUT_MS}ms` }),
      ...(name === 'old' && { era: '2025-11-25' }),
    })),
  )
  fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    const toolsets = servers.map(({ name }) => ({ name, tools: [`${name}.*`] }))
    return {
      ...plain,
      users: [...plain.users, user(7, 'bob', [token('bob'), ...TRIES.map((name) => token(name))])],
      mcp: { servers, toolsets: [...toolsets, { name: 'nothing', tools: ['none.*'] }] },
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  for (const server of running) {
    server.closeAllConnections()
    server.close()
  }
})

const list = (server: string, key = 'ann', params = {}) =>
  askMcp(fixture.gateway.url, key, 'tools/list', params, { path: `/mcp/${server}` })
const names = async (server: string, key = 'ann') =>
  listed((await list(server, key)).message).map(({ name }) => String(name))

test('all pages of a server are one page, up to 100 pages and 2,000 tools', async () => {
  expect(await names('three')).toEqual(['three_p0', 'three_p1', 'three_p2'])
  // A busy machine may take longer for 100 pages than a list waits; what it has then is not kept.
  await expect.poll(() => names('hundred')).toHaveLength(100)
  expect(await names('full')).toHaveLength(2_000)
  expect((await list('three')).message.result).not.toHaveProperty('nextCursor')
  const { message } = await list('three', 'ann', { cursor: '1' })
  expect(message.error?.code).toBe(-32_602)
})

test.each(['endless', 'crowded', 'flooded', 'large', 'silent'])(
  'the server %s is missing from the list and named, and the list is not kept',
  async (name) => {
    const { message, headers, status } = await list(name)
    expect(status).toBe(200)
    expect(listed(message)).toEqual([])
    expect(headers['x-gateway-mcp-unavailable']).toBe(name)
    expect(message.result).toMatchObject({ ttlMs: 0, cacheScope: 'private' })
  },
)

test('a list asks no server of which the caller has nothing, and names none', async () => {
  const before = asked.get('silent')
  const { headers } = await list('three')
  expect(headers['x-gateway-mcp-unavailable']).toBeUndefined()
  expect(asked.get('silent')).toBe(before)
})

test('a public list is shared, any other one belongs to one key, and one without a lifetime is asked each time', async () => {
  const [ann, bob] = [await names('public'), await names('public', 'bob')]
  expect(bob).toEqual(ann)
  expect(asked.get('public')).toBe(1)
  for (const server of ['private', 'mixed', 'old']) {
    const own = { ann: await names(server), bob: await names(server, 'bob') }
    expect(own.bob).not.toEqual(own.ann)
    const reads = Array.from({ length: 100 }, async (_, n) => {
      const key = n % 3 === 0 ? 'ann' : 'bob'
      return [await names(server, key), own[key]] as const
    })
    for (const [seen, expected] of await Promise.all(reads)) expect(seen).toEqual(expected)
  }
  expect(asked.get('private')).toBe(2)
  expect(asked.get('mixed')).toBe(4)
  expect(asked.get('old')).toBe(2)
  expect(await names('fresh')).not.toEqual(await names('fresh'))
})

test.each([
  ['lasting', 60_000, 600_000],
  ['eternal', 600_000, HOUR_MS],
])(
  'a list of the server %s may be kept as long as the server allows, at most an hour',
  async (name, over, maximum) => {
    const { ttlMs } = (await list(name)).message.result ?? {}
    expect(ttlMs).toBeGreaterThan(over)
    expect(ttlMs).toBeLessThanOrEqual(maximum)
  },
)

test('an empty list, to which no server contributes, may be kept for a minute', async () => {
  const { message } = await askMcp(fixture.gateway.url, 'ann', 'prompts/list', {}, { path: '/mcp/nothing' })
  expect(message.result).toMatchObject({ prompts: [], ttlMs: 60_000 })
})

test('the timeout of a call includes the time that its server takes for the list of its tools', async () => {
  const fresh = [...TRIES]
  const attempt = async (): Promise<boolean> => {
    const begunMs = performance.now()
    const before = called.length
    const params = { name: 'late_t0', arguments: {} }
    const { message } = await askMcp(fixture.gateway.url, fresh.pop() ?? '', 'tools/call', params)
    expect(message.result).toMatchObject({ _meta: { 'sluice/code': 'server_timeout' } })
    // On a busy machine the list itself may be too late, or the end.
    return called.length > before && performance.now() - begunMs < LATE_MS + TIMEOUT_MS
  }
  await expect.poll(attempt).toBe(true)
})
