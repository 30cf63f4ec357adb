import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '@redis/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { channelHealth, type KeyLimits } from '../fixtures/channel-health.ts'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, retryWhileOverloaded } from '../fixtures/fixture.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { requestsLeft } from '../fixtures/stating-provider.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { nodesOnRedis, setNodes, SHARED } from './fixture.ts'
import { atNight } from '../runner/tier.ts'

const KEYS = ['sk-upstream-one', 'sk-upstream-two']
/** A channel and model for each test, because the nodes remember what was stated. */
const MODELS = ['spent', 'refused', 'replayed', 'barrier', 'joined', 'sealed', 'down']

const configure = (upstream: ScriptedUpstream): Configuration => ({
  // The tests ask often what a node knows.
  rate_limits: {},
  models: priced(MODELS),
  channels: MODELS.map((name) => channel(name, upstream.baseUrl(name), { keys: KEYS })),
  users: [ROOT, user(2, 'ann', [token('ann')])],
})

const NAME = 'limits of providers on several nodes'
describe.skipIf(withoutRedis(NAME)).each(SHARED)('nodes on $name with Redis', (engine) => {
  const shared = nodesOnRedis(engine, configure)

  /** What a node shows of the keys of a channel. */
  async function limitsAt({ url }: RunningGateway, name: string): Promise<readonly KeyLimits[]> {
    return (await channelHealth(url, name))?.keys.limits ?? []
  }
  const gateway = (node: number): RunningGateway => shared.nodes.gateways[node] as RunningGateway
  /** How many requests a node believes to be left of the first key. */
  const leftAt = async (node: number, name: string): Promise<number | undefined> =>
    (await limitsAt(gateway(node), name))[0]?.requests?.remaining

  /** Lets the first key state what is left of it; the second states nothing. */
  function stating(name: string, remaining: number): void {
    shared.nodes.upstream.decide(name, ({ headers: { authorization } }) => ({
      kind: 'whole',
      usage: usageText(1, 1),
      ...(authorization === `Bearer ${KEYS[0]}` && { headers: requestsLeft(remaining) }),
    }))
  }
  /** Makes calls through a node; returns the keys that they used. */
  async function callsAt(node: number, name: string, count: number): Promise<readonly string[]> {
    const before = shared.nodes.upstream.received(name).length
    for (let calls = 0; calls < count; calls += 1) {
      const { status, text } = await retryWhileOverloaded(() => shared.nodes.chat(node, 'ann', ask(name)))
      expect(status, text).toBe(200)
    }
    return shared.nodes.upstream
      .received(name)
      .slice(before)
      .map(({ headers }) => String(headers.authorization).replace('Bearer ', ''))
  }
  /** Everything that nodes announce from now on, and a way to announce it again. */
  async function listening() {
    const client = createClient({ url: shared.server.url })
    const publisher = client.duplicate()
    await Promise.all([client.connect(), publisher.connect()])
    onTestFinished(() => {
      client.destroy()
      publisher.destroy()
    })
    const heard: { readonly channel: string; readonly text: string }[] = []
    await client.pSubscribe('*', (text, channelName) => void heard.push({ channel: channelName, text }))
    return {
      heard,
      limits: () => heard.filter(({ text }) => / limits \S/.test(text)),
      publish: (channelName: string, text: string) => publisher.publish(channelName, text),
    }
  }

  test('an upstream key that has no requests left according to one node is not used by the other', async () => {
    stating('spent', 0)
    expect(await callsAt(0, 'spent', 2)).toEqual(KEYS)
    await expect.poll(() => leftAt(1, 'spent')).toBe(0)
    expect(new Set(await callsAt(1, 'spent', 6))).toEqual(new Set([KEYS[1]]))
  })

  test('an upstream key that is refused on one node is set aside on the other, too', async () => {
    shared.nodes.upstream.decide('refused', ({ headers: { authorization } }) =>
      authorization === `Bearer ${KEYS[0]}` ? { kind: 'status', status: 401 } : { kind: 'whole' },
    )
    await callsAt(0, 'refused', 2)
    const rests = async (): Promise<boolean> =>
      (await limitsAt(gateway(1), 'refused'))[0]?.rests_until !== undefined
    await expect.poll(rests).toBe(true)
    expect(new Set(await callsAt(1, 'refused', 4))).toEqual(new Set([KEYS[1]]))
  })

  test('provider limits are announced to other nodes encrypted, without names, keys and numbers', async () => {
    const { heard, limits } = await listening()
    // A number that no random text contains.
    const remaining = 777_777_777
    stating('sealed', remaining)
    await callsAt(0, 'sealed', 2)
    await expect.poll(() => leftAt(1, 'sealed')).toBe(remaining)
    // Redis may send a message to the other node first.
    await expect.poll(() => limits().length).toBeGreaterThan(0)
    const texts = heard.map(({ text }) => text).join('\n')
    expect(texts).not.toMatch(/sk-upstream|"sealed"|777777777/)
  })

  test('announcements of provider limits that are forged or repeated change nothing', async () => {
    const { limits, publish } = await listening()
    stating('replayed', 0)
    await callsAt(0, 'replayed', 2)
    await expect.poll(() => leftAt(1, 'replayed')).toBe(0)
    // Redis may send a message to the other node first.
    await expect.poll(() => limits().length).toBeGreaterThan(0)
    const captured = [...limits()]
    // Both keys are tried, because the second one is refused.
    shared.nodes.upstream.decide('replayed', ({ headers: { authorization } }) =>
      authorization === `Bearer ${KEYS[1]}`
        ? { kind: 'status', status: 401 }
        : { kind: 'whole', headers: requestsLeft(500) },
    )
    for (let calls = 0; calls < 3; calls += 1) await shared.nodes.chat(0, 'ann', ask('replayed'))
    await expect.poll(() => leftAt(1, 'replayed')).toBe(500)
    const dropped = async (): Promise<number> =>
      (await metricsOf(gateway(1).url)).sum('sluice_node_messages_dropped_total')
    const droppedBefore = await dropped()
    for (const { channel: name, text } of captured) {
      await publish(name, text)
      const at = text.length - 8
      await publish(name, text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1))
      await publish(name, `${'0'.repeat(32)}${text.slice(32)}`)
      await publish(name, `${text}${'x'.repeat(9_000)}`)
    }
    // What is announced later is received later.
    stating('barrier', 123)
    await callsAt(0, 'barrier', 2)
    await expect.poll(() => leftAt(1, 'barrier')).toBe(123)
    expect(await leftAt(1, 'replayed')).toBe(500)
    expect(await leftAt(0, 'replayed')).toBe(500)
    expect(await dropped()).toBe(droppedBefore + 3 * captured.length)
  })

  test('a node that joins gets the provider limits that other nodes know', async () => {
    stating('joined', 42)
    await callsAt(0, 'joined', 2)
    const third = await shared.nodes.join()
    const left = async () => (await limitsAt(third, 'joined'))[0]?.requests?.remaining
    await expect.poll(left).toBe(42)
  })

  test('while Redis is down, each node uses the provider limits that it knows; afterwards nodes share new ones', async () => {
    const [one, two] = [gateway(0), gateway(1)]
    const left = async (node: RunningGateway) => (await limitsAt(node, 'down'))[0]?.requests?.remaining
    const call = async (node: number, remaining: number): Promise<void> => {
      stating('down', remaining)
      await callsAt(node, 'down', 2)
    }
    await call(0, 700)
    await expect.poll(() => left(two)).toBe(700)
    await shared.server.kill()
    await call(0, 600)
    await call(1, 650)
    expect([await left(one), await left(two)]).toEqual([600, 650])
    // The node with the later statement is back first, and announces it before the other one is back. A node
    // announces all that it knows at most once in two seconds.
    one.pause()
    await shared.server.restart()
    await delay(3_000)
    one.resume()
    // The later statement is the one that both have in the end.
    await expect.poll(() => left(one)).toBe(650)
    expect(await left(two)).toBe(650)
  })

  atNight(
    'all nodes together send one alert for a channel whose keys are near their limits, and another after a recovery',
    async () => {
      const told = await startAlertReceiver()
      onTestFinished(() => told.stop())
      const declared = (upstream: ScriptedUpstream): Configuration => ({
        ...configure(upstream),
        alerts: [told.declared('provider.limit')],
      })
      const { upstream, gateways, chat, database } = await setNodes(engine, 2, declared, {
        env: {
          REDIS_URL: shared.server.url,
        },
      })
      const conditions = async (): Promise<number> =>
        (await database.sql('select name from alert_conditions')).length
      const left = async (node: number): Promise<readonly (number | undefined)[]> =>
        (await limitsAt(gateways[node] as RunningGateway, 'spent')).map(({ requests }) => requests?.remaining)
      /** Both keys state what is left to this node, and then both nodes know. */
      const state = async (node: number, remaining: number): Promise<void> => {
        upstream.decide('spent', () => ({ kind: 'whole', headers: requestsLeft(remaining) }))
        for (const other of [0, 1])
          await expect
            .poll(async () => {
              expect((await chat(node, 'ann', ask('spent'))).status).toBe(200)
              return left(other)
            })
            .toEqual([remaining, remaining])
      }
      await state(0, 500)
      await state(0, 30)
      await told.atLeast(1)
      await state(1, 20)
      await state(0, 90)
      await state(1, 10)
      await state(1, 300)
      // What both nodes report of the end is stored before the next begins.
      await expect.poll(conditions).toBe(0)
      await state(1, 40)
      await told.atLeast(2)
      const data = { channel: 'spent', model: 'spent', kind: 'requests', resets_at: expect.any(Number) }
      expect(told.received.map((alert) => alert.data)).toEqual([
        { ...data, remaining: 30 },
        { ...data, remaining: 40 },
      ])
    },
  )
})
