import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { open } from '../fixtures/client.ts'
import { channel, priced, ROOT, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type RawConnection, rawConnection } from '../fixtures/raw-socket.ts'

const PLACES = 4
// Each round has another user, so that none waits for the places of the round before.
const USERS = Array.from({ length: 9 }, (_, index) => 2 + index)

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, ...USERS.map((id) => user(id, `user-${id}`, [], { access_token: accessToken(id) }))],
  }))
})
afterAll(() => fixture?.close())

const accessToken = (id: number) => `the-access-token-of-user-${id}`
const credentials = (id: number) => ({ authorization: accessToken(id), 'gateway-user': String(id) })

test.each<[string, number[], (socket: Socket, opened: Promise<string>) => unknown]>([
  ['directly after the request', USERS.slice(0, 4), (socket) => socket.end()],
  ['as soon as the stream is open', USERS.slice(4, 8), (socket, isOpen) => isOpen.then(() => socket.end())],
])('the places of live streams are free as soon as their clients are gone: %s', async (_, users, leave) => {
  for (const id of users) {
    const connections = takeAllPlaces(id)
    await Promise.all(
      connections.map((one) =>
        leave(
          one.socket,
          one.until('200 OK').catch(() => ''),
        ),
      ),
    )
    const answers = await Promise.all(connections.map((one) => one.closed()))
    for (const answer of answers) expect(answer).not.toContain('HTTP/1.1 429')
    await expectFreePlaces(id)
  }
})

test('a client that sends more behind the request of a live stream than is kept for later loses its place', async () => {
  const id = USERS[8]!
  const connections = takeAllPlaces(id)
  for (const one of connections) {
    await one.until('200 OK')
    // More than a connection keeps of further requests, which it would not read on behind.
    one.socket.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(5_000))
    one.socket.end()
  }
  const answers = await Promise.all(connections.map((one) => one.closed()))
  for (const answer of answers) expect(answer.split('HTTP/1.1')).toHaveLength(2)
  await expectFreePlaces(id)
})

function takeAllPlaces(id: number): RawConnection[] {
  const { port } = new URL(fixture.gateway.url)
  const headers = Object.entries({ host: 'localhost', ...credentials(id) })
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Array.from({ length: PLACES }, () =>
    rawConnection(Number(port), `GET /api/log/self/stream HTTP/1.1\r\n${head}\r\n`),
  )
}

// The places are free once the server has read what the clients sent last, not after a time limit.
async function expectFreePlaces(id: number): Promise<void> {
  const next = await Promise.all(
    Array.from({ length: PLACES }, () =>
      open(fixture.gateway.url, undefined, {
        method: 'GET',
        path: '/api/log/self/stream',
        headers: credentials(id),
      }),
    ),
  )
  expect(next.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  for (const response of next) response.abort()
}
