import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ADMIN, ADMIN_USER, plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const SECRET = 'a-very-secret-header-value'
const FILED = 'another-secret-of-the-file'

/** A service that lets everything pass, and what it was asked with. */
const asked: unknown[] = []
let service: Server
let url = ''
let fixture: Fixture
beforeAll(async () => {
  service = createServer((request, response) => {
    asked.push(request.headers['x-secret'])
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"action":"NONE"}')
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
    guards: [
      {
        name: 'filed',
        do: 'flag',
        match: { webhook: { url, headers: { 'x-other': FILED } } },
        tokens: ['none'],
      },
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  service?.close()
})

const asAdmin = <Data = unknown>(request: Parameters<typeof manage>[2], body?: Record<string, unknown>) =>
  manage<Data>(fixture.gateway.url, ADMIN, request, body)
const guardWith = (webhook: object, more: object = {}) => ({
  name: 'served',
  do: 'block',
  where: ['input'],
  match: { webhook },
  // With the default of two seconds, a call may continue before a halted service has read its request.
  timeout: '60s',
  ...more,
})
const sent = async (): Promise<unknown> => {
  await fixture.chat('ann', ask('m'))
  return asked.at(-1)
}

test("the secrets of a guard's service are in no response and in no entry of the audit log", async () => {
  const added = await asAdmin('POST /api/guards', guardWith({ url, headers: { 'x-secret': SECRET } }))
  expect([added.status, added.data]).toMatchObject([
    200,
    { match: { webhook: { headers: { 'x-secret': '***' } } } },
  ])
  expect(await sent()).toBe(SECRET)
  const { data: log } = await asAdmin('GET /api/audit?page_size=100')
  const { data: list } = await asAdmin('GET /api/guards')
  const told = JSON.stringify([log, list])
  expect(told).toContain('guard.create')
  expect(told).not.toContain(SECRET)
  expect(told).not.toContain(FILED)
})

test('a guard that is saved with the masked secrets that the list shows keeps its secrets', async () => {
  const shown = guardWith({ url, headers: { 'x-secret': '***' } }, { do: 'flag' })
  const changed = await asAdmin('PUT /api/guards', shown)
  expect([changed.status, changed.data]).toMatchObject([200, { do: 'flag' }])
  expect(await sent()).toBe(SECRET)
  const renewed = await asAdmin('PUT /api/guards', guardWith({ url, headers: { 'x-secret': 'new' } }))
  expect(renewed.status).toBe(200)
  expect(await sent()).toBe('new')
})

test.each([
  [
    'another address',
    'PUT /api/guards',
    () => guardWith({ url: `${url}/elsewhere`, headers: { 'x-secret': '***' } }),
    `match: expected headers in full, as "***" stands only for what this guard has at the same address`,
  ],
  [
    'another header',
    'PUT /api/guards',
    () => guardWith({ url, headers: { 'x-unknown': '***' } }),
    `match: expected headers in full, as "***" stands only for what this guard has at the same address`,
  ],
  [
    'another kind',
    'PUT /api/guards',
    () => ({ name: 'served', do: 'block', match: { lakera: { key: '***' } } }),
    `match: expected key in full, as "***" stands only for what this guard has at the same address`,
  ],
  [
    'a new guard',
    'POST /api/guards',
    () => ({ ...guardWith({ url, headers: { 'x-secret': '***' } }), name: 'new' }),
    `match: expected headers in full, as "***" stands only for what this guard has at the same address`,
  ],
] as const)(
  "a masked secret of a guard's service is refused where it cannot stand for the stored secret: %s",
  async (_, request, body, message) => {
    const refused = await asAdmin(request, body())
    expect([refused.status, refused.message]).toEqual([400, message])
  },
)
