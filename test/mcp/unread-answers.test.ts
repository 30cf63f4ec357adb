import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, send } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startMcpServer, statelessRequest, type TestMcpServer } from '../fixtures/mcp.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

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
    prompts: [{ definition: { name: 'long', description }, answer: () => ({ messages: [] }) }],
    ttlMs: 3_600_000,
  })
  answering = await startMcpServer({
    name: 'answering',
    versions: ['2026-07-28'],
    tools: () => [textTool({ name: 'write', description: 'writes' }, () => 'x'.repeat(ANSWER_BYTES))],
    ttlMs: 3_600_000,
  })
  const rules = { approve: 'never', most_answer: '32MiB' }
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
    users: [ROOT, user(2, 'ann', [token('ann')])],
    mcp: {
      servers: [
        ...LISTING.map((name) => ({ name, url: listing.url, ...rules })),
        { name: 'answering', url: answering.url, ...rules },
      ],
      toolsets: [
        { name: 'all', tools: ['*.*'] },
        { name: 'few', tools: ['answering.*'] },
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
async function whileUnread({ body, ...options }: typeof LIST | typeof RESPONSE, run: () => Promise<void>) {
  const unread: ClientRequest[] = []
  try {
    for (let index = 0; index < UNREAD; index += 1) {
      const sent = send(fixture.gateway.url, body, { key: 'ann', ...options })
      unread.push(sent)
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      response.on('error', () => {})
      expect(response.statusCode).toBe(200)
      expect(Number(response.headers['content-length'])).toBeGreaterThan(ANSWER_BYTES - MIB)
    }
    await run()
  } finally {
    for (const one of unread) one.destroy()
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
  await whileUnread(request, async () => expect(await isRefused()).toBe(true))
  await expect.poll(isRefused).toBe(false)
})

test('a list takes memory while its servers send it, and is refused without', async () => {
  const { body, ...options } = stateless('prompts/list')
  const status = async () => (await call(fixture.gateway.url, body, { key: 'ann', ...options })).status
  await whileUnread(CALL, async () => expect(await status()).toBe(503))
  await expect.poll(status).toBe(200)
})
