import { describe, expect, test } from 'vitest'
import { errorBody, usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { nodesOnRedis, SHARED } from './fixture.ts'

const KEYS = ['upstream-key-one', 'upstream-key-two', 'upstream-key-three', 'upstream-key-four']

const configure = (upstream: ScriptedUpstream): Configuration => ({
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'), { keys: KEYS })],
  users: [ROOT, user(2, 'ann', [token('ann')])],
})

const configureWith =
  (affinity: object) =>
  (upstream: ScriptedUpstream): Configuration => ({ ...configure(upstream), options: { affinity } })

function script(upstream: ScriptedUpstream): void {
  upstream.script('m', { kind: 'whole', usage: usageText(5_000, 5, 4_000) })
}

async function turn(url: string, session: string): Promise<void> {
  const body = { model: 'm', messages: [{ role: 'user', content: 'hello' }] }
  const answer = await call(url, body, { key: 'ann', headers: { 'x-session-id': session } })
  expect(answer.status, answer.text).toBe(200)
}

const keysSeen = (upstream: ScriptedUpstream): string[] =>
  upstream.received('m').map(({ headers }) => String(headers.authorization))

const NAME = 'sessions of several nodes'
describe.skipIf(withoutRedis(NAME)).each(SHARED)('nodes on $name with Redis', (engine) => {
  const shared = nodesOnRedis(engine, configure, patientProgram)

  const entries = async (): Promise<string[]> =>
    (await shared.server.command(['KEYS', '*:session:*'])) as string[]
  const values = async (): Promise<unknown[]> =>
    Promise.all((await entries()).toSorted().map((name) => shared.server.command(['GET', name])))
  const urls = (): string[] => shared.nodes.gateways.map(({ url }) => url)

  test('all calls of a session use one upstream key on all nodes', async () => {
    script(shared.nodes.upstream)
    const [first = '', second = ''] = urls()
    await turn(first, 'a')
    await expect.poll(entries).toHaveLength(1)
    for (let n = 0; n < 6; n++) await turn(n % 2 === 0 ? second : first, 'a')
    expect(new Set(keysSeen(shared.nodes.upstream)).size).toBe(1)
  })

  test('a session that moves to another upstream key on one node uses that key on the other nodes, too', async () => {
    script(shared.nodes.upstream)
    const [first = '', second = ''] = urls()
    await turn(first, 'moves')
    const [bound = ''] = keysSeen(shared.nodes.upstream).slice(-1)
    await expect
      .poll(async () => {
        await turn(second, 'moves')
        return keysSeen(shared.nodes.upstream).at(-1)
      })
      .toBe(bound)
    shared.nodes.upstream.decide('m', ({ headers }) =>
      headers.authorization === bound
        ? { kind: 'status', status: 429, headers: { 'retry-after-ms': '1' }, body: errorBody('slow down') }
        : { kind: 'whole', usage: usageText(5_000, 5, 4_000) },
    )
    const before = await values()
    await turn(first, 'moves')
    const [moved = ''] = keysSeen(shared.nodes.upstream).slice(-1)
    expect(moved).not.toBe(bound)
    await expect.poll(values).not.toEqual(before)
    script(shared.nodes.upstream)
    for (const url of [second, first, second]) await turn(url, 'moves')
    expect(keysSeen(shared.nodes.upstream).slice(-3)).toEqual([moved, moved, moved])
  })

  test('a session that changes its upstream key in its first call on a node uses that key on the other nodes, too', async () => {
    script(shared.nodes.upstream)
    const [first = '', second = ''] = urls()
    const known = await entries()
    await turn(first, 'moves at once')
    await expect.poll(entries).toHaveLength(known.length + 1)
    const [bound = ''] = keysSeen(shared.nodes.upstream).slice(-1)
    shared.nodes.upstream.decide('m', ({ headers }) =>
      headers.authorization === bound
        ? { kind: 'status', status: 429, headers: { 'retry-after-ms': '1' }, body: errorBody('slow down') }
        : { kind: 'whole', usage: usageText(5_000, 5, 4_000) },
    )
    const before = await values()
    await turn(second, 'moves at once')
    await expect.poll(values).not.toEqual(before)
    const [moved = ''] = keysSeen(shared.nodes.upstream).slice(-1)
    expect(moved).not.toBe(bound)
    script(shared.nodes.upstream)
    await turn(first, 'moves at once')
    expect(keysSeen(shared.nodes.upstream).at(-1)).toBe(moved)
  })

  test("a forged entry in Redis about a session's upstream key is ignored, and the call is answered", async () => {
    script(shared.nodes.upstream)
    const [first = '', second = ''] = urls()
    await shared.server.command(['FLUSHALL'])
    await turn(first, 'b')
    await expect.poll(entries).toHaveLength(1)
    const [name = ''] = await entries()
    const sealed = String(await shared.server.command(['GET', name]))
    await shared.server.command(['SET', name, sealed.replace(/^\d+/, '1')])
    await turn(second, 'b')
    const metrics = await (await fetch(`${second}/metrics`)).text()
    expect(metrics).toMatch(/sluice_untrusted_entries_total\{kind="session"\} 1/)
  })

  test("after Redis loses its data, a node that remembers a session's upstream key goes on using it", async () => {
    script(shared.nodes.upstream)
    const [first = '', second = ''] = urls()
    await turn(first, 'lost')
    await shared.server.command(['FLUSHALL'])
    // Both nodes answer, and a node that has the session in memory keeps it.
    for (const url of [second, first]) await turn(url, 'lost')
    const [before, , after] = keysSeen(shared.nodes.upstream).slice(-3)
    expect(after).toBe(before)
    // The next use writes it again.
    await expect.poll(entries).toHaveLength(1)
  })

  test('beyond options.affinity.most sessions, all nodes forget the session that was used longest ago', async () => {
    const [first = '', second = ''] = urls()
    await shared.server.command(['FLUSHALL'])
    for (const gateway of shared.nodes.gateways)
      await gateway.apply(configureWith({ most: 5 })(shared.nodes.upstream))
    for (let n = 0; n < 20; n++) {
      await turn(n % 2 === 0 ? first : second, `bounded-${n}`)
      // The first is used again and again.
      await turn(n % 2 === 0 ? second : first, 'bounded-0')
    }
    await expect.poll(entries).toHaveLength(5)
    const [key] = keysSeen(shared.nodes.upstream).slice(-1)
    for (const url of [first, second]) await turn(url, 'bounded-0')
    expect(new Set(keysSeen(shared.nodes.upstream).slice(-2))).toEqual(new Set([key]))
    const kept = (await shared.server.command(['KEYS', '*:previous:*'])) as string[]
    expect(kept).toHaveLength(5)
    for (const gateway of shared.nodes.gateways) await gateway.apply(configure(shared.nodes.upstream))
  })

  test('calls that belong to sessions are answered while Redis is unreachable', async () => {
    script(shared.nodes.upstream)
    await shared.server.kill()
    for (const url of urls()) await turn(url, 'c')
    await shared.server.restart()
  })
})
