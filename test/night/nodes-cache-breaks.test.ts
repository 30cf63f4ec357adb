import { type Simulator, startSimulator } from '@sluice/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { dateClock, type MovedClock } from '../fixtures/moved-clock.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { type Nodes, setNodes, SHARED } from '../nodes/fixture.ts'

const MODELS = ['claude-sonnet-4-6', 'claude-sonnet-4-5']
const MINUTE_S = 60
const EPHEMERAL = { type: 'ephemeral' }
const TOOL = { name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } }
const long = (tokens: number): string => 'abc '.repeat(tokens)
const marked = (text: string, ttl?: string) => ({ type: 'text', text, cache_control: { ...EPHEMERAL, ttl } })

/** How the channel of a node is set up. */
interface Place {
  readonly name?: string
  readonly key?: string
}

interface Row {
  readonly cache_break: string
  readonly cached_tokens: number
}

describe.each(SHARED)('two nodes on $name', (engine) => {
  const ends: (() => unknown)[] = []
  let simulator: Simulator
  let clock: MovedClock
  let time = Date.now()
  let movedS = 0

  beforeAll(async () => {
    const instant = { firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }
    simulator = await startSimulator(instant, { models: { messages: MODELS }, now: () => time })
    ends.push(() => simulator.close())
    clock = dateClock((end) => ends.push(end))
  })
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })

  const configured = ({ name = 'one', key = 'k1' }: Place = {}): Configuration => ({
    models: priced(MODELS),
    channels: [channel(name, simulator.messagesUrl, { protocol: 'messages', keys: [key], models: MODELS })],
    users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
  })

  /** Lets time pass for the provider, and for the nodes. */
  function pass(seconds: number, nodeSeconds: number): void {
    time += seconds * 1000
    movedS += nodeSeconds
    clock.move(movedS)
  }

  /** Makes a call through one of the nodes, and returns its row. */
  async function ask(nodes: Nodes, node: number, session: string, more: object = {}): Promise<Row> {
    const url = nodes.gateways[node]?.url ?? ''
    const request = {
      model: 'claude-sonnet-4-6',
      max_tokens: 16,
      tools: [TOOL],
      system: [marked(`You are ${session}. ${long(1_500)}`)],
      messages: [{ role: 'user', content: [marked('hello')] }],
      ...more,
    }
    const options = { key: 'ann', path: '/v1/messages', headers: { 'x-session-id': session } }
    const answer = await call(url, request, options)
    expect(answer.status, answer.text).toBe(200)
    const path = `GET /api/log/?request_id=${String(answer.headers['x-request-id'])}` as const
    // The row reaches the shared database a little later.
    const rowOf = async (): Promise<Row | undefined> =>
      (await manage<{ items: Row[] }>(url, ADMIN, path)).data.items[0]
    await expect.poll(rowOf).toBeDefined()
    return (await rowOf()) as Row
  }

  describe.skipIf(withoutRedis('breaks of prompt caches over nodes'))('with Redis', () => {
    let redis: RedisServer
    let nodes: Nodes
    beforeAll(async () => {
      redis = await startRedisServer()
      ends.push(() => redis.stop())
      const env = { REDIS_URL: redis.url, ...clock.env }
      nodes = await setNodes(engine, 2, () => configured(), { env, onEnd: (end) => ends.push(end) })
    })

    const previous = async (): Promise<string[]> =>
      (await redis.command(['KEYS', '*:previous:*'])) as string[]

    test.each<[string, object]>([
      ['model_changed', { model: 'claude-sonnet-4-5' }],
      ['tools_changed', { tools: [{ ...TOOL, description: 'Looks around' }] }],
      ['system_changed', { system: [marked(`Be brief. ${long(1_500)}`)] }],
    ])(
      "a call that misses the prompt cache is compared with the session's previous call on another node: %s",
      async (reason, changed) => {
        const session = reason
        expect(await ask(nodes, 0, session)).toMatchObject({ cache_break: '', cached_tokens: 0 })
        const again = await ask(nodes, 1, session)
        expect(again.cached_tokens).toBeGreaterThan(1_000)
        expect(again.cache_break).toBe('')
        expect((await ask(nodes, 0, session, changed)).cache_break).toBe(reason)
      },
    )

    test('a session that moves between nodes has the cache miss reason messages_changed only if earlier messages changed', async () => {
      const turns = (count: number) =>
        Array.from({ length: count }, (_, turn) => [
          { role: 'user', content: [marked(`turn ${turn} ${long(1_500)}`)] },
          { role: 'assistant', content: 'yes' },
        ])
          .flat()
          .slice(0, -1)
      const base = { system: undefined }
      await ask(nodes, 0, 'turns', { ...base, messages: turns(1) })
      await ask(nodes, 1, 'turns', { ...base, messages: turns(2) })
      // Compared with its own last call, the node would miss that the second turn was cached and is gone.
      const short = [...turns(1), { role: 'assistant', content: 'no' }, { role: 'user', content: 'on' }]
      expect((await ask(nodes, 0, 'turns', { ...base, messages: turns(3) })).cache_break).toBe('')
      expect((await ask(nodes, 1, 'turns', { ...base, messages: short })).cache_break).toBe(
        'messages_changed',
      )
    })

    test("the time since the session's call on another node decides between the cache miss reasons provider and lifetime_passed", async () => {
      const hour = { messages: [{ role: 'user', content: [marked(long(4_000))] }] }
      const system = [marked(`For an hour. ${long(1_100)}`, '1h')]
      await ask(nodes, 0, 'lifetime', { ...hour, system })
      pass(6 * MINUTE_S, 6 * MINUTE_S)
      const row = await ask(nodes, 1, 'lifetime', { ...hour, system })
      expect(row.cached_tokens).toBeGreaterThan(1_000)
      expect(row.cache_break).toBe('lifetime_passed')
      await ask(nodes, 0, 'provider')
      pass(6 * MINUTE_S, MINUTE_S)
      expect((await ask(nodes, 1, 'provider')).cache_break).toBe('provider')
    })

    test.each<[string, Place]>([
      ['channel_moved', { name: 'two', key: 'k2' }],
      ['key_moved', { key: 'k2' }],
    ])(
      'a call that moves a session to another channel or key has that reason for its cache miss, on any node: %s',
      async (reason, place) => {
        await ask(nodes, 0, reason)
        expect((await ask(nodes, 1, reason)).cached_tokens).toBeGreaterThan(1_000)
        await nodes.gateways[0]?.apply(configured(place))
        expect((await ask(nodes, 0, reason)).cache_break).toBe(reason)
        await nodes.gateways[0]?.apply(configured())
      },
    )

    test("a Redis entry about a session's previous call is ignored if it was copied from the entry of another session", async () => {
      await ask(nodes, 0, 'sealed')
      await ask(nodes, 0, 'other', { tools: [] })
      const names = await previous()
      const entries = await Promise.all(names.map((name) => redis.command(['GET', name])))
      for (const [index, name] of names.entries())
        await redis.command(['SET', name, String(entries[(index + 1) % names.length])])
      for (const session of ['sealed', 'other'])
        expect((await ask(nodes, 1, session, { system: [marked(long(1_600))] })).cache_break).toBe('')
    })

    test('while Redis is down, a call that missed its prompt cache is answered, and its usage row has no reason of the miss', async () => {
      await ask(nodes, 0, 'down')
      await redis.kill()
      expect((await ask(nodes, 1, 'down', { tools: [] })).cache_break).toBe('')
      await redis.restart()
    })
  })

  test('several nodes without Redis give a call no reason for a cache miss rather than a wrong one', async () => {
    const nodes = await setNodes(engine, 2, () => configured(), { env: clock.env })
    const [session, tools] = ['alone', [{ ...TOOL, description: 'Looks around' }]]
    await ask(nodes, 0, session)
    await ask(nodes, 1, session, { tools })
    // Its own last call had other tools; the session had the same.
    pass(6 * MINUTE_S, MINUTE_S)
    expect((await ask(nodes, 0, session, { tools })).cache_break).toBe('')
    await nodes.gateways[1]?.stop()
    // Alone again, it knows what was last, from the second call on.
    await expect
      .poll(async () => {
        await ask(nodes, 0, session, { tools })
        return (await ask(nodes, 0, session, { tools: [] })).cache_break
      })
      .toBe('tools_changed')
  })
})
