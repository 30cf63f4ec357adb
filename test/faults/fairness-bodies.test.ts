import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RawConnection, rawConnection } from '../fixtures/raw-socket.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { expectServedDuring } from './served-during.ts'

const MIB = 1024 * 1024
/** A kilobyte that decompresses to a mebibyte; its announced length is one byte more. */
const UNFINISHED = gzipSync(Buffer.alloc(MIB, 32))
const MANY = 266
/** A gateway that uses less CPU time than this in a fifth of a second is idle, in hundredths of a second. */
const TICKS = 5

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { body_limit: '32MiB', trusted_proxies: ['127.0.0.1/32'] },
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: 'access-token-of-ann' }),
      user(3, 'bob', [token('bob')], { access_token: 'access-token-of-bob' }),
    ],
  }))
  fixture.upstream.script('m', { kind: 'whole' })
})
afterAll(() => fixture?.close())

const held: RawConnection[] = []
afterEach(() => {
  for (const { socket } of held.splice(0)) socket.destroy()
})

/** Sends a head and a part of the announced body, and then nothing more. */
function hold(head: string, length: number, part: Buffer): RawConnection {
  const connection = rawConnection(
    fixture.gateway.port,
    `POST ${head}host: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`,
  )
  connection.socket.write(part)
  held.push(connection)
  return connection
}

/** Settles when the gateway has read or refused all written bytes, and is idle. */
async function settled(connections: readonly RawConnection[]): Promise<void> {
  const isDone = ({ socket }: RawConnection): boolean => socket.destroyed || socket.writableLength === 0
  await expect.poll(() => connections.every(isDone)).toBe(true)
  let before = -TICKS
  const worked = (): number => {
    const ticks = ticksOf(fixture.gateway.pid)
    const passed = ticks - before
    before = ticks
    return passed
  }
  await expect.poll(worked, { interval: 200 }).toBeLessThan(TICKS)
}

/** CPU time of a process, in hundredths of a second. */
function ticksOf(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ').slice(11) ?? []
  return Number(user) + Number(system)
}

const unfinished = (head: string): RawConnection =>
  hold(`${head}content-encoding: gzip\r\n`, UNFINISHED.length + 1, UNFINISHED)

/** Incomplete bodies of a key, each of 32 MiB minus one byte. */
const largeOnes = (key: string, count: number): RawConnection[] =>
  Array.from({ length: count }, () =>
    hold(
      `/v1/chat/completions HTTP/1.1\r\nauthorization: Bearer sk-${key}\r\n`,
      32 * MIB,
      Buffer.alloc(32 * MIB - 1, 32),
    ),
  )

const bob = (bytes = 100): Promise<FullResponse> => fixture.chat('bob', ask('m', { user: 'x'.repeat(bytes) }))

describe('bodies that are never completed', () => {
  test("incomplete bodies that clients without a key send from a few addresses cause no refusal of other clients' calls", async () => {
    await expectServedDuring(
      () =>
        settled(
          Array.from({ length: MANY }, (_, i) =>
            unfinished(`/api/user/login HTTP/1.1\r\nx-forwarded-for: 192.0.2.${i % 16}\r\n`),
          ),
        ),
      () => bob(),
    )
  })

  test("incomplete bodies of one account's management requests cause no refusal of another account's calls and requests", async () => {
    const self = (): Promise<FullResponse> =>
      call(
        fixture.gateway.url,
        { display_name: 'b'.repeat(60), padding: 'x'.repeat(500_000) },
        {
          method: 'PUT',
          path: '/api/user/self',
          headers: {
            authorization: 'access-token-of-bob',
            'gateway-user': '3',
            'x-forwarded-for': '198.51.100.7',
          },
        },
      )
    const attack = (): Promise<void> =>
      settled(
        Array.from({ length: MANY }, () =>
          unfinished(
            '/api/token/batch HTTP/1.1\r\nauthorization: access-token-of-ann\r\ngateway-user: 2\r\nx-forwarded-for: 203.0.113.9\r\n',
          ),
        ),
      )
    await expectServedDuring(attack, self)
    expect((await bob()).status).toBe(200)
  })

  test.each([
    ['small ones', 100],
    ['ones of four mebibytes', 4 * MIB],
  ])('eight incomplete bodies of 32 MiB of one key cause no refusal of another key: %s', async (_, bytes) => {
    await expectServedDuring(
      () => settled(largeOnes('ann', 8)),
      () => bob(bytes),
    )
  })

  test('incomplete bodies are refused with 408 when other requests need their memory', async () => {
    const connections = largeOnes('ann', 8)
    let told = ''
    for (const connection of connections)
      void connection.until('stalled while others').then(
        (answer) => (told = answer),
        () => {},
      )
    await settled(connections)
    // It takes a moment until the gateway continues to read.
    const largeOne = async (): Promise<number[]> =>
      (await Promise.all([bob(30 * MIB), bob(30 * MIB)])).map(({ status }) => status)
    await expect.poll(largeOne).toEqual([200, 200])
    await expect.poll(() => told).toMatch(/^HTTP\/1\.1 408 .*"code":"request_timeout"/s)
  })
})

describe('the body of a login', () => {
  const login = (body: Buffer, headers: Record<string, string> = {}): Promise<FullResponse> =>
    call(fixture.gateway.url, body, { path: '/api/user/login', headers })
  const given = (bytes: number): Buffer =>
    Buffer.from(JSON.stringify({ username: 'ann', password: 'x' }).padEnd(bytes))

  test('a login whose body is larger than 4 KiB is refused with 413', async () => {
    expect((await login(given(4_096))).status).toBe(401)
    expect((await login(given(4_097))).status).toBe(413)
  })
  test('a login whose body has a content encoding such as gzip is refused with 415', async () => {
    expect((await login(gzipSync(given(10)), { 'content-encoding': 'gzip' })).status).toBe(415)
    expect((await login(given(10), { 'content-encoding': 'identity' })).status).toBe(401)
  })
})
