import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { type RawConnection, rawConnection } from '../fixtures/raw-socket.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** The maximum number of connections of this copy of the gateway; half of them may come from one address. */
const TOTAL = 200
const SHARE = 100
const RESERVE = 10

const PROXY = '127.0.0.8'
/** The last part of the next unused address, so that each test has its own addresses. */
let next = 10
const freshAddress = (): string => `127.0.0.${next++}`

const copy = await patchedProgram([
  {
    file: 'src/gateway/listen.ts',
    text: 'const MAX_CONNECTIONS = 10_000',
    by: `const MAX_CONNECTIONS = ${TOTAL}`,
  },
])
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      options: { trusted_proxies: [`${PROXY}/32`] },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root, host: '0.0.0.0' },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy.discard()
})

const opened: RawConnection[] = []
afterEach(async () => {
  for (const { socket } of opened.splice(0)) socket.resetAndDestroy()
  // Waits until the connections of one test are closed, before the next test begins.
  while ((await figure('sluice_open_connections')) > 1) await sleep(20)
})

/** A connection that is closed at the end of its test. */
function connected(from: string, bytes = ''): RawConnection {
  const connection = rawConnection(fixture.gateway.port, bytes, from)
  opened.push(connection)
  return connection
}

/** Opens connections, and settles once the gateway has accepted all of them. */
async function openConnections(count: number, from: string, bytes = ''): Promise<RawConnection[]> {
  const connections: RawConnection[] = []
  for (let i = 0; i < count; i++) {
    const connection = connected(from, bytes)
    connections.push(connection)
    await new Promise((resolve) => connection.socket.once('connect', resolve).once('close', resolve))
  }
  // Connections are accepted in order: when this is answered, all earlier ones are accepted, except for those
  // in the queues of two listeners.
  for (let i = 0; i < 3; i++) await figure('sluice_open_connections')
  return connections
}

/**
 * Keeps this number of requests in flight. Refused requests, which are possible on a busy machine, are
 * repeated.
 */
async function hold(count: number, from: string, request = UNFINISHED): Promise<RawConnection[]> {
  let held: RawConnection[] = []
  while (held.length < count) {
    held.push(...(await openConnections(count - held.length, from, request)))
    for (const { socket } of held) if (socket.bytesRead > 0) socket.resetAndDestroy()
    held = held.filter(isOpen)
  }
  return held
}

const isOpen = ({ socket }: RawConnection): boolean => !socket.destroyed
const openOf = (connections: readonly RawConnection[]): number => connections.filter(isOpen).length

/** A value of the gateway's metrics, requested on a new connection. */
async function figure(name: string): Promise<number> {
  const request = 'GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'
  const text = await rawConnection(fixture.gateway.port, request).closed()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

function post(body: object, more = ''): string {
  const text = JSON.stringify(body)
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\ncontent-type: application/json\r\n${more}content-length: ${text.length}\r\n\r\n${text}`
}
const CALL = post(ask('m'), 'connection: close\r\n')
/** A request that stays in flight as long as its connection, because its body is never completed. */
const UNFINISHED = post(ask('m')).slice(0, -10)

/**
 * Makes calls on new connections, one after the other; all of them succeed. Returns the median latency in
 * milliseconds.
 */
async function medianOfCalls(from: string, count = 31): Promise<number> {
  fixture.upstream.script('m', { kind: 'whole' })
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const began = performance.now()
    const answer = await rawConnection(fixture.gateway.port, CALL, from).closed()
    times.push(performance.now() - began)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  }
  return times.toSorted((a, b) => a - b)[count >> 1] as number
}

const health = (from: string): Promise<string> =>
  rawConnection(
    fixture.gateway.port,
    'GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    from,
  ).closed()

/**
 * Expects the latency of others to be as before the attack, plus some milliseconds. Other work of the machine
 * may slow down one measurement, so that it is repeated.
 */
async function expectOthersServed(beforeMs: number): Promise<void> {
  await expect.poll(() => medianOfCalls(freshAddress())).toBeLessThan(2 * beforeMs + 50)
  expect(await health('127.0.0.1')).toMatch(/^HTTP\/1\.1 200 /)
  expect(await health(freshAddress())).toMatch(/^HTTP\/1\.1 200 /)
}

describe('an address that opens more connections than its share', () => {
  test.each([
    ['on which nothing is said', ''],
    ['with a head that does not end', 'GET /v1/models HTTP/1.1\r\nhost: x\r\n'],
    ['that were used once', 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['whose body comes after the answer', 'POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n'],
  ])(
    'while one address opens too many connections %s, others are served, and the address gets only its share',
    async (_, bytes) => {
      const beforeMs = await medianOfCalls(freshAddress())
      const neighbour = connected(freshAddress(), 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
      await neighbour.until('ok\n')
      const attacker = freshAddress()
      const attack = await openConnections(TOTAL + SHARE, attacker, bytes)
      await expect.poll(() => openOf(attack)).toBe(SHARE)
      // A client at the same address is served, and the oldest connection there is closed for it.
      expect(await health(attacker)).toMatch(/^HTTP\/1\.1 200 /)
      await expectOthersServed(beforeMs)
      expect(isOpen(neighbour)).toBe(true)
    },
  )

  test('requests in flight of an address with too many connections are not aborted', async () => {
    const attacker = freshAddress()
    const attacked = Promise.withResolvers<void>()
    fixture.upstream.script('m', { kind: 'stream', endsAfter: attacked.promise })
    const stream = connected(attacker, post(askStream('m'), 'connection: close\r\n'))
    await stream.until('word1')
    await openConnections(TOTAL, attacker)
    attacked.resolve()
    expect(await stream.closed()).toMatch(/data: \[DONE\]\s+0\s+$/)
  })

  test('an address whose requests in flight use its whole share gets no more connections, and others are served', async () => {
    const beforeMs = await medianOfCalls(freshAddress())
    const attacker = freshAddress()
    const attack = await hold(SHARE, attacker)
    expect(await health(attacker)).toBe('')
    expect(openOf(attack)).toBe(SHARE)
    expect(await figure('sluice_connections_refused_total')).toBeGreaterThan(0)
    await expectOthersServed(beforeMs)
  })
})

test('when several addresses use all connections, idle connections of those with the most are closed to serve other clients', async () => {
  const beforeMs = await medianOfCalls(freshAddress())
  const neighbour = connected(freshAddress(), 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
  await neighbour.until('ok\n')
  const attack: RawConnection[] = []
  for (let i = 0; i < 4; i++) attack.push(...(await openConnections(SHARE, freshAddress())))
  await expectOthersServed(beforeMs)
  await expect.poll(() => openOf(attack)).toBeLessThanOrEqual(TOTAL - RESERVE)
  expect(isOpen(neighbour)).toBe(true)
  neighbour.socket.write('GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  expect(await neighbour.closed()).toMatch(/ok\n[^]*HTTP\/1\.1 200 /)
})

describe('behind a trusted proxy', () => {
  const forwarded = (client: string, request: string): string =>
    request.replace('host: x\r\n', `host: x\r\nx-forwarded-for: ${client}\r\n`)

  test('a trusted proxy may open more connections than a single client address', async () => {
    const connections = await openConnections(SHARE + RESERVE, PROXY)
    expect(openOf(connections)).toBe(SHARE + RESERVE)
    expect(await health(PROXY)).toMatch(/^HTTP\/1\.1 200 /)
  })

  test("requests in flight are limited by the client's address behind a trusted proxy", async () => {
    const held = await hold(SHARE, PROXY, forwarded('192.0.2.1', UNFINISHED))
    const asked = (client: string): Promise<string> =>
      rawConnection(fixture.gateway.port, forwarded(client, CALL), PROXY).closed()
    fixture.upstream.script('m', { kind: 'whole' })
    const refused = await asked('192.0.2.1')
    expect(refused).toMatch(/^HTTP\/1\.1 429 [^]*\r\nretry-after: 1\r\n[^]*"code":"rate_limited"/)
    expect(await asked('192.0.2.2')).toMatch(/^HTTP\/1\.1 200 /)
    for (const { socket } of held.slice(0, 5)) socket.resetAndDestroy()
    await expect.poll(() => asked('192.0.2.1')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

/** An address of this machine outside the loopback interface. */
const outside = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')

test.skipIf(outside === undefined)(
  "while all other connections are busy, clients on the gateway's own machine can still connect",
  async () => {
    await hold(SHARE, freshAddress())
    await hold(TOTAL - RESERVE - SHARE, freshAddress())
    const { address = '' } = outside ?? {}
    const answered = (): Promise<number | string> =>
      call(fixture.gateway.url, undefined, { method: 'GET', path: '/healthz', host: address }).then(
        ({ status }) => status,
        () => 'closed',
      )
    // The last client's connection may still be open and idle.
    await expect.poll(answered).toBe('closed')
    expect(await health('127.0.0.1')).toMatch(/^HTTP\/1\.1 200 /)
  },
)
