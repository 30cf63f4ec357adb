import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call, send } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, startMcpServer, statelessRequest, type TestMcpServer } from '../fixtures/mcp.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { atNight } from '../runner/tier.ts'

const MIB = 1024 * 1024
const ANSWER_BYTES = 20 * MIB
/** A user that calls alone may have 168 MiB: these answers leave less than a body of 30 MiB takes. */
const UNREAD = 7
const BODY = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"${'x'.repeat(30 * MIB)}"}}`
/** A list has at most 4 MiB of each server. */
const LISTING = ['a', 'b', 'c', 'd', 'e']

let fixture: Fixture
let listing: TestMcpServer
let answering: TestMcpServer
beforeAll(async () => {
  const description = 'x'.repeat(ANSWER_BYTES / LISTING.length - 4_096)
  listing = await startMcpServer({
    name: 'listing',
    versions: ['2026-07-28'],
    tools: () => [textTool({ name: 'long', description }, () => 'called')],
    prompts: [
      {
        definition: { name: 'long', description: 'x'.repeat(3 * MIB) },
        answer: () => ({ messages: [] }),
      },
    ],
    ttlMs: 3_600_000,
  })
  answering = await startMcpServer({
    name: 'answering',
    versions: ['2026-07-28', '2025-11-25'],
    tools: () => [
      textTool({ name: 'write', description: 'writes' }, ({ arguments: { bytes = ANSWER_BYTES } }) =>
        'x'.repeat(Number(bytes)),
      ),
    ],
    ttlMs: 3_600_000,
  })
  const rules = { approve: 'never', most_answer: '32MiB' }
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
    users: [ROOT, ADMIN_USER, user(2, 'ann', [token('ann')])],
    mcp: {
      servers: [
        ...LISTING.map((name) => ({ name, url: listing.url, ...rules })),
        { name: 'answering', url: answering.url, ...rules },
        { name: 'waiting', url: answering.url, ...rules },
        {
          name: 'ending',
          url: answering.url,
          era: '2025-11-25',
          timeout: '10s',
          price: { call: 0.001 },
          ...rules,
        },
      ],
      toolsets: [
        { name: 'all', tools: ['*.*'] },
        { name: 'few', tools: ['answering.*'] },
        { name: 'two', tools: ['a.*', 'b.*'] },
      ],
    },
  }))
  fixture.upstream.script('m', wholeResponse({ text: 'x'.repeat(ANSWER_BYTES) }))
})
afterAll(async () => {
  await fixture?.close()
  await Promise.all([listing?.close(), answering?.close()])
})

const stateless = (method: string, params = {}) => ({ path: '/mcp', ...statelessRequest(method, params) })
const LIST = stateless('tools/list')
const CALL = stateless('tools/call', { name: 'answering_write', arguments: {} })
const TOOL = { type: 'mcp', server_label: 'few', server_url: '/mcp/few', require_approval: 'never' }
const RESPONSE = { path: '/v1/responses', body: { model: 'm', input: 'hi', tools: [TOOL] } }

/** Leaves answers unread while it runs. */
async function whileUnread(
  { body, ...options }: typeof LIST | typeof RESPONSE,
  run: (read: () => void) => Promise<void>,
  count = UNREAD,
) {
  const unread: ClientRequest[] = []
  const leave = (): void => {
    for (const one of unread) one.destroy()
  }
  try {
    for (let index = 0; index < count; index += 1) {
      const sent = send(fixture.gateway.url, body, { key: 'ann', ...options })
      unread.push(sent)
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      response.on('error', () => {})
      expect(response.statusCode).toBe(200)
      expect(Number(response.headers['content-length'])).toBeGreaterThan(ANSWER_BYTES - MIB)
    }
    await run(leave)
  } finally {
    leave()
  }
}
test.each([
  ['lists', LIST],
  ['results of tools', CALL],
  ["responses with the gateway's tools", RESPONSE],
])('%s count as memory of their user until they are read', async (_kind, request) => {
  const isRefused = async () =>
    (await call(fixture.gateway.url, BODY, { path: '/mcp', key: 'ann' })).status === 503
  await expect.poll(isRefused).toBe(false)
  // A server that takes long is missing from a list.
  const unavailable = async () =>
    (await askMcp(fixture.gateway.url, 'ann', 'tools/list')).headers['x-gateway-mcp-unavailable']
  await expect.poll(unavailable).toBeUndefined()
  await whileUnread(request, async () => expect(await isRefused()).toBe(true))
  await expect.poll(isRefused).toBe(false)
})

atNight('a list takes memory while its servers send it, and is refused without', async () => {
  const status = async () =>
    (await askMcp(fixture.gateway.url, 'ann', 'prompts/list', {}, { path: '/mcp/two' })).status
  // What is left has room for the list of 6 MiB, but not twice.
  await whileUnread(CALL, async () => expect(await status()).toBe(503), UNREAD + 1)
  await expect.poll(status).toBe(200)
})

/** With these, a user has 8 MiB left; one answer has gone beyond the share. */
const ALL_UNREAD = 9
const callFrom = (server: string) =>
  askMcp(fixture.gateway.url, 'ann', 'tools/call', {
    name: `${server}_write`,
    arguments: { bytes: 12 * MIB },
  })
const received = (method: string): number => answering.received(method).length

atNight('a result waits until memory for it is free', async () => {
  await whileUnread(
    CALL,
    async (leave) => {
      const before = received('tools/call')
      const waiting = callFrom('waiting')
      await expect.poll(() => received('tools/call')).toBe(before + 1)
      leave()
      const { message } = await waiting
      expect(JSON.stringify(message.result).length).toBeGreaterThan(12 * MIB)
    },
    ALL_UNREAD,
  )
})

test('a tool whose result finds no memory was called: it is charged, its server told, and the client not asked to try again', async () => {
  await whileUnread(
    CALL,
    async () => {
      const { status, headers, message } = await callFrom('ending')
      expect(status).toBe(200)
      expect(headers['retry-after']).toBeUndefined()
      expect(message.result).toMatchObject({ isError: true, _meta: { 'sluice/code': 'overloaded' } })
      const id = String(headers['x-request-id'])
      const row = async () => (await manage(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)).data
      await expect.poll(row).toMatchObject({ quota: 500, reason: 'cut', error: { code: 'overloaded' } })
      await expect.poll(() => received('notifications/cancelled')).toBe(1)
    },
    ALL_UNREAD,
  )
  const servers = (await manage(fixture.gateway.url, ADMIN, 'GET /api/mcp/servers')).data
  expect(servers).toContainEqual(expect.objectContaining({ name: 'ending', state: 'ok' }))
})
