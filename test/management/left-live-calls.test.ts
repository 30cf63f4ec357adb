import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CERTAINLY_GONE_MS, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'

const BEN = { authorization: 'the-access-token-of-ben', 'gateway-user': '2' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ben', [token('ben')], { access_token: BEN.authorization })],
  }))
})
afterAll(() => fixture?.close())

test.each<[string, (socket: Socket, opened: Promise<string>) => unknown]>([
  ['directly after the request', (socket) => socket.end()],
  ['as soon as the stream is open', (socket, isOpen) => isOpen.then(() => socket.end())],
])('the places of live streams are free as soon as their clients are gone: %s', async (_, leave) => {
  const { port } = new URL(fixture.gateway.url)
  const headers = Object.entries({ host: 'localhost', ...BEN })
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  // Each round takes all places of a user, and leaves them at once, as pages that are loaded again do.
  for (let round = 0; round < 4; round++) {
    const connections = Array.from({ length: 4 }, () =>
      rawConnection(Number(port), `GET /api/log/self/stream HTTP/1.1\r\n${head}\r\n`),
    )
    const left = connections.map((one) =>
      leave(
        one.socket,
        one.until('200 OK').catch(() => ''),
      ),
    )
    await Promise.all(left)
    const answers = await Promise.all(connections.map((one) => one.closed()))
    for (const answer of answers) expect(answer).not.toContain('429')
    // The places are free once the server has read what the clients sent last, not after a time limit.
    const next = await Promise.all(
      Array.from({ length: 4 }, () =>
        open(fixture.gateway.url, undefined, { method: 'GET', path: '/api/log/self/stream', headers: BEN }),
      ),
    )
    expect(next.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    for (const response of next) response.abort()
    await sleep(CERTAINLY_GONE_MS)
  }
})

test('a client that sends more behind the request of a live stream than is kept for later loses its place', async () => {
  const { port } = new URL(fixture.gateway.url)
  const headers = Object.entries({ host: 'localhost', ...BEN })
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const connections = Array.from({ length: 4 }, () =>
    rawConnection(Number(port), `GET /api/log/self/stream HTTP/1.1\r\n${head}\r\n`),
  )
  for (const one of connections) {
    await one.until('200 OK')
    // More than a connection keeps of further requests, which it would not read on behind.
    one.socket.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(5_000))
    one.socket.end()
  }
  const answers = await Promise.all(connections.map((one) => one.closed()))
  for (const answer of answers) expect(answer.split('HTTP/1.1')).toHaveLength(2)
  const next = await Promise.all(
    Array.from({ length: 4 }, () =>
      open(fixture.gateway.url, undefined, { method: 'GET', path: '/api/log/self/stream', headers: BEN }),
    ),
  )
  expect(next.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  for (const response of next) response.abort()
  await sleep(CERTAINLY_GONE_MS)
}, 60_000)
