import { describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { untilOpen } from '../fixtures/open-calls.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { byTier } from '../runner/tier.ts'
import { type Nodes, SHARED, sharedNodes } from './fixture.ts'

const GRANTED = 1_000_000_000
/** The same number of calls on each node, so that a test can wait until all of them are open. */
const CALLS_OF_NODE = byTier(67, 333)
const CALLS = 3 * CALLS_OF_NODE
/** Ten prompt and five output tokens. */
const COST = 30
/** Models and keys, one for each test. */
const NAMES = ['equal', 'kept', 'killed', 'broken', 'removed', 'lost'] as const

function configuration(upstream: ScriptedUpstream) {
  return {
    options: { retries: 0, cache: { ttl: '10m' } },
    rate_limits: {},
    models: priced(NAMES),
    channels: NAMES.map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      user(
        2,
        'ann',
        NAMES.map((name) => token(name, { remain_quota: GRANTED })),
        { access_token: 'ann-access' },
      ),
    ],
  }
}

/** Answers of a node of which it is decided whether they are kept. */
async function decided(nodes: Nodes, node: number): Promise<number> {
  const { text } = await call(nodes.gateways[node]?.url ?? '', undefined, { method: 'GET', path: '/metrics' })
  const counts = text.matchAll(/^sluice_answer_cache_total\{result="(?:not_)?kept"\} (\d+)$/gm)
  return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0)
}

const statusOf = ({ headers }: FullResponse): unknown => headers['x-gateway-cache']

describe.each(SHARED)('the answer cache on three nodes over $name', (engine) => {
  const shared = sharedNodes(engine, 3, configuration, patientProgram)
  const charged = async (name: string): Promise<number> => (await shared.nodes.token(`token-${name}`)).used

  test('an answer that one node cached is returned by the other nodes without an upstream call', async () => {
    const { nodes } = shared
    const before = await decided(nodes, 0)
    const first = await nodes.chat(0, 'kept', ask('kept'))
    // The answer is kept after it was sent.
    await expect.poll(() => decided(nodes, 0)).toBe(before + 1)
    const others = [await nodes.chat(1, 'kept', ask('kept')), await nodes.chat(2, 'kept', askStream('kept'))]
    expect([first, ...others].map(statusOf)).toEqual(['miss', 'hit', 'hit'])
    expect(others[0]?.text).toBe(first.text)
    expect(nodes.upstream.received('kept')).toHaveLength(1)
  })

  test('the answer of a running call is not cached if another node removes cached answers meanwhile, even if not announced', async () => {
    const { nodes } = shared
    const [{ id } = { id: 0 }] = await nodes.database.sql(
      "select id from tokens where name = 'token-removed'",
    )
    const of = (content: string) => ({ kind: 'whole', content, usage: usageText(10, 5) }) as const
    const ann = { id: 2, accessToken: 'ann-access' }
    const removals = [
      { account: ann, query: '' },
      { account: ann, query: '?model=removed' },
      { account: ann, query: `?token=${Number(id)}` },
      { account: { id: 1, accessToken: ROOT.access_token }, query: '' },
    ]
    const [before0, before2] = [await decided(nodes, 0), await decided(nodes, 2)]
    for (const [seed, { account, query }] of removals.entries()) {
      const go = Promise.withResolvers<void>()
      nodes.upstream.script('removed', { ...of('earlier'), after: go.promise }, of('later'))
      const before = nodes.upstream.received('removed').length
      const first = nodes.chat(0, 'removed', ask('removed', { seed }))
      await nodes.upstream.receivedAtLeast('removed', before + 1)
      const removed = await manage(nodes.gateways[1]?.url ?? '', account, `DELETE /api/cache${query}`)
      expect(removed.status).toBe(200)
      go.resolve()
      expect((await first).text).toContain('earlier')
      await expect.poll(() => decided(nodes, 0)).toBe(before0 + seed + 1)
      const second = await nodes.chat(2, 'removed', ask('removed', { seed }))
      expect([statusOf(second), second.json().choices[0]?.message.content]).toEqual(['miss', 'later'])
      await expect.poll(() => decided(nodes, 2)).toBe(before2 + seed + 1)
      const third = await nodes.chat(0, 'removed', ask('removed', { seed }))
      expect([statusOf(third), third.json().choices[0]?.message.content]).toEqual(['hit', 'later'])
    }
  })

  test(`${CALLS} simultaneous equal calls to several nodes make at most one upstream call per node, and only these are charged`, async () => {
    const { nodes } = shared
    const go = Promise.withResolvers<void>()
    nodes.upstream.script('equal', { kind: 'whole', after: go.promise, usage: usageText(10, 5) })
    const calls = Array.from({ length: CALLS }, (_, index) => nodes.chat(index % 3, 'equal', ask('equal')))
    await Promise.all(nodes.gateways.map(({ url }) => untilOpen(url, CALLS_OF_NODE)))
    await nodes.upstream.receivedAtLeast('equal', 3)
    go.resolve()
    const answers = await Promise.all(calls)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(nodes.upstream.received('equal')).toHaveLength(3)
    expect(answers.filter((answer) => statusOf(answer) === 'miss')).toHaveLength(3)
    await expect.poll(() => charged('equal')).toBe(3 * COST)
  })

  test(`when a node is killed during ${CALLS} equal calls, clients of other nodes get equal answers for one charge per node`, async () => {
    const { nodes } = shared
    const go = Promise.withResolvers<void>()
    nodes.upstream.script('killed', { kind: 'whole', after: go.promise, usage: usageText(10, 5) })
    const calls = Array.from({ length: CALLS }, async (_, index) => ({
      node: index % 3,
      answer: await nodes.chat(index % 3, 'killed', ask('killed')).catch(() => undefined),
    }))
    await Promise.all(nodes.gateways.map(({ url }) => untilOpen(url, CALLS_OF_NODE)))
    await nodes.upstream.receivedAtLeast('killed', 3)
    await nodes.gateways[0]?.kill()
    go.resolve()
    const answers = await Promise.all(calls)
    expect(answers.every(({ node, answer }) => (answer === undefined) === (node === 0))).toBe(true)
    const said = answers.flatMap(({ answer }) => (answer ? [`${answer.status} ${answer.text}`] : []))
    expect(new Set(said).size).toBe(1)
    expect(nodes.upstream.received('killed')).toHaveLength(3)
    await expect.poll(() => charged('killed')).toBe(2 * COST)
    // Its call may have cost something: that is charged when it is back, and never twice.
    await nodes.gateways[0]?.restart()
    const again = await nodes.chat(0, 'killed', ask('killed'))
    expect([statusOf(again), `${again.status} ${again.text}`]).toEqual(['hit', said[0]])
    expect(nodes.upstream.received('killed')).toHaveLength(3)
  })

  test(`when the shared upstream call of ${CALLS} equal calls breaks off, waiting clients get one answer for one call per node`, async () => {
    const { nodes } = shared
    const breaks = Promise.withResolvers<void>()
    const lost = {
      kind: 'stream',
      events: 3,
      word: 'lost ',
      endsAfter: breaks.promise,
      ending: 'reset',
      usage: usageText(10, 5),
    } as const
    nodes.upstream.script('broken', lost, lost, lost, {
      kind: 'whole',
      content: 'found',
      usage: usageText(10, 5),
    })
    const live = await Promise.all(
      nodes.gateways.map(({ url }) => open(url, askStream('broken'), { key: 'broken' })),
    )
    for (const one of live) await one.until('lost ')
    const calls = Array.from({ length: CALLS }, (_, index) => nodes.chat(index % 3, 'broken', ask('broken')))
    await Promise.all(nodes.gateways.map(({ url }) => untilOpen(url, CALLS_OF_NODE + 1)))
    breaks.resolve()
    for (const one of live) expect((await one.end()).text).not.toContain('[DONE]')
    const answers = await Promise.all(calls)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.json().choices[0]?.message.content).toBe('found')
    const asked = nodes.upstream.received('broken').length
    expect(asked).toBeGreaterThan(3)
    expect(asked).toBeLessThanOrEqual(6)
    const misses = answers.filter((answer) => statusOf(answer) === 'miss')
    expect(misses).toHaveLength(asked - 3)
    // Each upstream call is charged once, and hits nothing.
    const rows = () => nodes.database.sql("select cache, quota from usage_log where model = 'broken'")
    await expect.poll(async () => (await rows()).length).toBe(CALLS + 3)
    const quotas = (await rows()).map(({ cache, quota }) => ({
      isHit: cache === 'hit',
      quota: Number(quota),
    }))
    expect(quotas.filter(({ isHit }) => !isHit)).toHaveLength(asked)
    expect(quotas.filter(({ isHit, quota }) => isHit && quota > 0)).toEqual([])
    const sum = quotas.reduce((all, { quota }) => all + quota, 0)
    expect(sum).toBeGreaterThanOrEqual((asked - 3) * COST)
    await expect.poll(() => charged('broken')).toBe(sum)
  })

  test("the answer of a killed node's call is not cached, and the other nodes call the upstream themselves", async () => {
    const { nodes } = shared
    nodes.upstream.script(
      'lost',
      { kind: 'stream', events: 3, ending: 'stall' },
      { kind: 'stream', events: 3, usage: usageText(10, 5) },
    )
    const [killed] = nodes.gateways
    if (!killed) throw new Error('there is no node')
    const live = await Promise.all([1, 2].map(() => open(killed.url, askStream('lost'), { key: 'lost' })))
    for (const one of live) await one.until('word')
    await killed.kill()
    onTestFinished(() => killed.restart())
    for (const one of live) expect((await one.end()).broken).toBe(true)
    const decidedByBoth = async (): Promise<number> => (await decided(nodes, 1)) + (await decided(nodes, 2))
    const before = await decidedByBoth()
    const answers = await Promise.all([1, 2].map((node) => nodes.chat(node, 'lost', askStream('lost'))))
    for (const { text } of answers) expect(text).toContain('[DONE]')
    const asked = nodes.upstream.received('lost').length
    expect(asked).toBeGreaterThanOrEqual(2)
    expect(asked).toBeLessThanOrEqual(3)
    // Answers are kept after they were sent.
    await expect.poll(decidedByBoth).toBeGreaterThanOrEqual(before + asked - 1)
    expect(statusOf(await nodes.chat(2, 'lost', askStream('lost')))).toBe('hit')
  })
})
