import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { freePort } from '../fixtures/port.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const LONG = '1h'

function staged(redisUrl: string, root?: string): Promise<Fixture> {
  return startFixture(
    (upstream) => ({
      rate_limits: { key: { requests: 5, window: LONG } },
      models: { free: { vendor: 'acme', price: PLAIN_PRICE } },
      channels: [channel('free', upstream.baseUrl('free'))],
      users: [
        ROOT,
        user(
          2,
          'ann',
          'abcdefgh'.split('').map((name) => token(name)),
        ),
        user(4, 'bob', [token('bob')]),
      ],
    }),
    { env: { REDIS_URL: redisUrl }, ...(root !== undefined && { root }) },
  )
}

async function statuses(fixture: Fixture, key: string, calls: number): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: calls }, () => fixture.chat(key, ask('free'))))
  return answers.map(({ status }) => status).toSorted((a, b) => a - b)
}

async function figure({ gateway }: Fixture, name: string): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

describe.skipIf(withoutRedis('a gateway with Redis'))('a gateway with REDIS_URL', () => {
  let server: RedisServer
  let fixture: Fixture
  beforeAll(async () => {
    server = await startRedisServer()
    await server.command(['CONFIG', 'SET', 'requirepass', 'a-password-of-redis'])
    fixture = await staged(server.url.replace('//', '//:a-password-of-redis@'), await patientProgram())
  })
  afterAll(async () => {
    await fixture?.close()
    await server?.stop()
  })

  test('a gateway with REDIS_URL applies rate limits, also across a restart, and reports that it is connected', async () => {
    const isConnected = () => figure(fixture, 'sluice_redis_connected')
    await expect.poll(isConnected).toBe(1)
    expect(await statuses(fixture, 'sk-a', 7)).toEqual([200, 200, 200, 200, 200, 429, 429])
    await fixture.gateway.restart()
    await expect.poll(isConnected).toBe(1)
    expect(await statuses(fixture, 'sk-a', 2)).toEqual([429, 429])
    expect(await statuses(fixture, 'sk-b', 2)).toEqual([200, 200])
  })

  test('a gateway whose Redis is unreachable serves calls, applies rate limits by itself, and counts such calls in a metric', async () => {
    await server.kill()
    expect(await statuses(fixture, 'sk-c', 7)).toEqual([200, 200, 200, 200, 200, 429, 429])
    await expect.poll(() => figure(fixture, 'sluice_redis_connected')).toBe(0)
    expect(await figure(fixture, 'sluice_limits_alone_total')).toBeGreaterThanOrEqual(6)
    await server.restart()
    await expect.poll(() => figure(fixture, 'sluice_redis_connected')).toBe(1)
    expect(await statuses(fixture, 'sk-c', 1)).toEqual([429])
  })

  test('the call after a limit was raised is admitted, and states like the refusal after it that nothing is left', async () => {
    const root = { id: 1, accessToken: 'root-access-token' }
    const next = async (): Promise<unknown> => {
      const { status, headers } = await fixture.chat('sk-bob', ask('free'))
      return [status, headers['x-ratelimit-remaining-requests']]
    }
    for (let limit = 1; limit <= 3; limit += 1) {
      const fields = { id: 4, rate_limit_requests: limit, rate_limit_window: 3600 }
      const raised = await manage(fixture.gateway.url, root, 'PUT /api/user/', fields)
      expect(raised.status, raised.message).toBe(200)
      expect([await next(), await next()]).toEqual([
        [200, '0'],
        [429, '0'],
      ])
    }
  })

  test('a gateway with REDIS_URL never prints the password of the Redis server', () => {
    const logs = fixture.gateway.logs()
    expect(logs).toContain(`the Redis server at 127.0.0.1:${server.port}`)
    expect(logs).not.toContain('a-password-of-redis')
  })
})

test.skipIf(withoutRedis('a member of a Redis Cluster'))(
  'a gateway whose Redis server is a member of a cluster says so, and applies rate limits alone',
  async () => {
    const member = await startRedisServer(['--cluster-enabled', 'yes'])
    const fixture = await staged(member.url)
    try {
      await expect
        .poll(() => fixture.gateway.logs())
        .toContain('it is a member of a Redis Cluster; REDIS_URL must name a server that is in none')
      expect(await statuses(fixture, 'sk-a', 7)).toEqual([200, 200, 200, 200, 200, 429, 429])
    } finally {
      await fixture.close()
      await member.stop()
    }
  },
)

describe('a gateway whose Redis server is unreachable', () => {
  test('a gateway whose Redis server is missing starts, reports that it is not connected, and applies rate limits', async () => {
    const fixture = await staged(`redis://:a-password@127.0.0.1:${await freePort()}`)
    try {
      await expect
        .poll(() => fixture.gateway.logs())
        .toMatch(/the Redis server at 127\.0\.0\.1:\d+ cannot be used \(.*ECONNREFUSED.*\)/)
      expect(fixture.gateway.logs()).not.toContain('a-password')
      expect(await statuses(fixture, 'sk-a', 7)).toEqual([200, 200, 200, 200, 200, 429, 429])
      expect(await figure(fixture, 'sluice_redis_connected')).toBe(0)
    } finally {
      await fixture.close()
    }
  })

  test.each([
    ['talks nonsense', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['talks rubbish in its own language', Buffer.from('*3\r\n:-5\r\n$-1\r\n+\xff\r\n'.repeat(50))],
    ['does not respond', undefined],
  ])('a gateway whose Redis server %s starts, and applies rate limits alone', async (_, answer) => {
    const nonsense = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => answer && socket.write(answer))
    })
    const port = await freePort()
    await new Promise<void>((resolve) => nonsense.listen(port, '127.0.0.1', resolve))
    const fixture = await staged(`redis://127.0.0.1:${port}`)
    try {
      expect(await statuses(fixture, 'sk-a', 7)).toEqual([200, 200, 200, 200, 200, 429, 429])
    } finally {
      await fixture.close()
      nonsense.close()
    }
  })
})
