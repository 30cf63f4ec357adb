import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { RedisClientType } from '@redis/client'
import { PATIENT } from '../fixtures/counting-nodes.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { BoundedEntries } from '../../src/redis/bounded-entries.ts'
import { RedisConnection, type RedisConnectionHandlers } from '../../src/redis/redis-connection.ts'

const RETENTION = { ms: 3_600_000, most: 20 }
const entries = new BoundedEntries('test', 'session')

describe.skipIf(withoutRedis('bounded entries'))('entries of several users in Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedisServer()
  })
  beforeEach(() => server.command(['FLUSHALL']))
  afterAll(() => server?.stop())

  async function connected(): Promise<RedisClientType> {
    const handlers: RedisConnectionHandlers = {
      onConnected: (client) => entries.load(client),
      heartbeat: async (client) => void (await client.ping()),
      onLost: () => {},
    }
    const connection = new RedisConnection(server.url, handlers, PATIENT.connectionMs)
    onTestFinished(() => connection.close())
    await connection.firstAttempt
    const { client } = connection
    if (!client) throw new Error('not connected')
    return client
  }

  /** Writes numbered entries of an owner, one each millisecond from `atMs` on. */
  async function write(client: RedisClientType, owner: number, count: number, atMs: number): Promise<void> {
    for (let n = 0; n < count; n++)
      await entries.set(client, { owner, name: `${owner}-${n}`, entry: 'x' }, atMs + n, RETENTION)
  }

  async function kept(client: RedisClientType, owner: number, count: number): Promise<number[]> {
    const names = Array.from({ length: count }, (_, n) => `${owner}-${n}`)
    const found = await entries.read(client, names, 9)
    return names.flatMap((_, n) => (found[n] === 'x' ? [n] : []))
  }

  test('one user who writes many entries pushes out none of users within their shares', async () => {
    const client = await connected()
    for (let owner = 1; owner <= 4; owner++) await write(client, owner, 4, 1_000)
    await write(client, 9, 200, 2_000)
    for (let owner = 1; owner <= 4; owner++) expect(await kept(client, owner, 4)).toEqual([0, 1, 2, 3])
    expect(await kept(client, 9, 200)).toEqual([196, 197, 198, 199])
  })

  test('a user alone has all entries, and gives them to another up to half, the oldest first', async () => {
    const client = await connected()
    await write(client, 1, 40, 1_000)
    expect(await kept(client, 1, 40)).toHaveLength(20)
    await write(client, 2, 40, 2_000)
    expect(await kept(client, 1, 40)).toEqual([30, 31, 32, 33, 34, 35, 36, 37, 38, 39])
    expect(await kept(client, 2, 40)).toHaveLength(10)
  })

  test('expired entries give way before any others, and leave nothing behind', async () => {
    const client = await connected()
    await write(client, 1, 20, 1_000)
    await write(client, 2, 3, 1_000 + RETENTION.ms + 100)
    expect(await kept(client, 2, 3)).toEqual([0, 1, 2])
    expect(await kept(client, 1, 20)).toEqual([])
    expect(((await server.command(['KEYS', '*'])) as string[]).toSorted()).toEqual([
      'test:session:2-0',
      'test:session:2-1',
      'test:session:2-2',
      'test:sessions:all',
      'test:sessions:all:2',
      'test:sessions:owners',
    ])
  })

  test('an entry that is written again counts once', async () => {
    const client = await connected()
    for (let n = 0; n < 50; n++) await write(client, 1, 5, 1_000 + n)
    await write(client, 2, 15, 5_000)
    expect(await kept(client, 1, 5)).toHaveLength(5)
    expect(await kept(client, 2, 15)).toHaveLength(15)
  })
})
