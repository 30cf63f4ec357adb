import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { untilOpen } from '../fixtures/open-calls.ts'
import { SHARED, sharedNodes } from './fixture.ts'

const GRANTED = 1_000_000_000
/** Ten prompt and five output tokens. */
const COST = 30
/** Models and keys, one for each test. */
const NAMES = ['equal', 'replayed', 'failed', 'early', 'late', 'lapsed', 'restarted', 'cut'] as const
type Name = (typeof NAMES)[number]

function configuration(upstream: ScriptedUpstream) {
  return {
    options: { retries: 0 },
    rate_limits: {},
    models: priced(NAMES),
    channels: NAMES.map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      user(
        2,
        'ann',
        NAMES.map((name) => token(name, { remain_quota: GRANTED })),
      ),
    ],
  }
}

const withKey = (key: string) => ({ headers: { 'idempotency-key': key } })
const isReplayed = ({ headers }: FullResponse): boolean => headers['idempotency-replayed'] === 'true'

/** Starts a stream, and kills its gateway in the middle of it. */
async function killedDuring(
  gateway: RunningGateway,
  upstream: ScriptedUpstream,
  name: Name,
  key: string,
): Promise<void> {
  upstream.script(name, { kind: 'stream', events: 3, ending: 'stall' }, { kind: 'stream', events: 3 })
  const live = await open(gateway.url, askStream(name), { key: name, ...withKey(key) })
  await live.until('word')
  await gateway.kill()
}

describe.each(SHARED)('idempotency keys on two nodes over $name', (engine) => {
  const shared = sharedNodes(engine, 2, configuration, patientProgram)
  const charged = async (name: Name): Promise<number> => (await shared.nodes.token(`token-${name}`)).used

  test('calls with the same idempotency key on two nodes make one upstream call, and get equal answers for one charge', async () => {
    const { nodes } = shared
    const go = Promise.withResolvers<void>()
    const { upstream } = nodes
    upstream.script('equal', { kind: 'stream', endsAfter: go.promise, usage: usageText(10, 5) })
    const key = randomUUID()
    const attempts = Array.from({ length: 30 }, (_, index) =>
      nodes.chat(index % 2, 'equal', askStream('equal'), withKey(key)),
    )
    await Promise.all(nodes.gateways.map(({ url }) => untilOpen(url, attempts.length / 2)))
    go.resolve()
    const answers = await Promise.all(attempts)
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter((answer) => !isReplayed(answer))).toHaveLength(1)
    expect(upstream.received('equal')).toHaveLength(1)
    await expect.poll(() => charged('equal')).toBe(COST)
  })

  test('an answer is replayed by another node for the same idempotency key; another request with that key is a conflict there', async () => {
    const { nodes } = shared
    const key = randomUUID()
    const first = await nodes.chat(0, 'replayed', ask('replayed'), withKey(key))
    const second = await nodes.chat(1, 'replayed', ask('replayed'), withKey(key))
    expect(isReplayed(second)).toBe(true)
    expect(second.bytes.equals(first.bytes)).toBe(true)
    const conflict = await nodes.chat(1, 'replayed', ask('replayed', { temperature: 1 }), withKey(key))
    expect(conflict.status).toBe(422)
    expect(nodes.upstream.received('replayed')).toHaveLength(1)
  })

  test("a call that waits for another node's call with the same idempotency key is sent upstream itself if that call fails", async () => {
    const { nodes } = shared
    const go = Promise.withResolvers<void>()
    nodes.upstream.script('failed', { kind: 'status', status: 500, after: go.promise }, { kind: 'whole' })
    const key = randomUUID()
    const failing = nodes.chat(0, 'failed', ask('failed'), withKey(key))
    await nodes.upstream.receivedAtLeast('failed', 1)
    const waiting = nodes.chat(1, 'failed', ask('failed'), withKey(key))
    await untilOpen(nodes.gateways[1]?.url ?? '', 1)
    go.resolve()
    expect((await failing).status).toBe(500)
    expect((await waiting).status).toBe(200)
    expect(isReplayed(await waiting)).toBe(false)
    expect(nodes.upstream.received('failed')).toHaveLength(2)
  })

  test.each([
    [3_600, 'early'],
    [-3_600, 'late'],
  ] as const)(
    "a node whose clock is wrong by %d seconds does not repeat another node's call with the same idempotency key",
    async (seconds, name) => {
      const { nodes } = shared
      const clock = dateClock()
      clock.move(seconds)
      const other = await startGateway({
        config: configuration(nodes.upstream),
        env: { DATABASE_URL: nodes.database.place, ...clock.env },
        root: await patientProgram(),
      })
      onTestFinished(() => other.discard())
      const go = Promise.withResolvers<void>()
      nodes.upstream.script(name, { kind: 'stream', endsAfter: go.promise, usage: usageText(10, 5) })
      const key = randomUUID()
      const first = nodes.chat(0, name, askStream(name), withKey(key))
      await nodes.upstream.receivedAtLeast(name, 1)
      const second = call(other.url, askStream(name), { key: name, ...withKey(key) })
      // It is refused with another body, so that the second attempt has found the claim by then.
      const conflict = await call(other.url, ask(name), { key: name, ...withKey(key) })
      expect(conflict.status).toBe(422)
      go.resolve()
      expect((await second).text).toBe((await first).text)
      expect(nodes.upstream.received(name)).toHaveLength(1)
      await expect.poll(() => charged(name)).toBe(COST)
    },
  )

  test("a repeated call whose idempotency key a killed node was serving is sent upstream again by another node once the node's claim has lapsed", async () => {
    const { nodes } = shared
    const [first] = nodes.gateways
    const key = randomUUID()
    if (first) await killedDuring(first, nodes.upstream, 'lapsed', key)
    onTestFinished(() => first?.restart())
    let ended = 0
    const asked = Array.from({ length: 3 }, () =>
      nodes.chat(1, 'lapsed', askStream('lapsed'), withKey(key)).finally(() => (ended += 1)),
    )
    await untilOpen(nodes.gateways[1]?.url ?? '', asked.length)
    expect([ended, nodes.upstream.received('lapsed').length]).toEqual([0, 1])
    // As if the minute of the claim had passed.
    await nodes.database.sql('update idempotent_calls set until_ms = 0')
    const attempts = await Promise.all(asked)
    expect(attempts.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(attempts.map(({ text }) => text)).size).toBe(1)
    expect(nodes.upstream.received('lapsed')).toHaveLength(2)
  })

  test('a killed node sends a call that repeats the idempotency key of a call it was serving upstream again after its restart', async () => {
    const { nodes } = shared
    const [first] = nodes.gateways
    const key = randomUUID()
    if (first) await killedDuring(first, nodes.upstream, 'restarted', key)
    await first?.restart()
    // The call does not wait until the claim of the killed process lapses.
    await nodes.database.sql('update idempotent_calls set until_ms = until_ms + 600000 where until_ms > 0')
    const answer = await nodes.chat(0, 'restarted', askStream('restarted'), withKey(key))
    expect(answer.status).toBe(200)
    expect(nodes.upstream.received('restarted')).toHaveLength(2)
  })
})

describe('idempotency keys after a crash of a gateway with the embedded database', () => {
  test('after kill -9, stored answers are replayed for their idempotency keys, and a call that was cut off is sent upstream again', async () => {
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const gateway = await startGateway({ config: configuration(upstream) })
    onTestFinished(() => gateway.discard())
    const [kept, cut] = [randomUUID(), randomUUID()]
    const first = await call(gateway.url, ask('replayed'), { key: 'replayed', ...withKey(kept) })
    // The answer is kept after it was delivered.
    await expect.poll(() => databaseOf(gateway.dataDir).keptKinds()).toContain('idempotency')
    await killedDuring(gateway, upstream, 'cut', cut)
    await gateway.restart()
    const second = await call(gateway.url, ask('replayed'), { key: 'replayed', ...withKey(kept) })
    expect(isReplayed(second)).toBe(true)
    expect(second.bytes.equals(first.bytes)).toBe(true)
    expect(upstream.received('replayed')).toHaveLength(1)
    const again = await call(gateway.url, askStream('cut'), { key: 'cut', ...withKey(cut) })
    expect(again.status).toBe(200)
    const third = await call(gateway.url, askStream('cut'), { key: 'cut', ...withKey(cut) })
    expect(isReplayed(third)).toBe(true)
    expect(upstream.received('cut')).toHaveLength(2)
  })
})
