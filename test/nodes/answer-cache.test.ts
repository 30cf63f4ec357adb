import { describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { type FullResponse, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { untilOpen } from '../fixtures/open-calls.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { byTier } from '../tier.ts'
import { type Nodes, setNodes, SHARED } from './fixture.ts'

const GRANTED = 1_000_000_000
/** By day fewer, so that a busy database finds each kept answer in time. */
const CALLS = byTier(300, 1_000)
/** Calls that reach each node at least. */
const CALLS_OF_NODE = Math.floor(CALLS / 3)
/** Ten prompt and five output tokens. */
const COST = 30

function configuration(upstream: ScriptedUpstream) {
  return {
    options: { retries: 0, cache: { ttl: '10m' } },
    rate_limits: {},
    models: priced(['m', 'slow']),
    channels: [channel('m', upstream.baseUrl('m')), channel('slow', upstream.baseUrl('slow'))],
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: GRANTED })])],
  }
}

const statusOf = ({ headers }: FullResponse): unknown => headers['x-gateway-cache']

describe.each(SHARED)('the answer cache on three nodes over $name', (engine) => {
  const started = (): Promise<Nodes> => setNodes(engine, 3, configuration)
  const charged = async ({ token: tokenOf }: Nodes): Promise<number> => (await tokenOf('token-ann')).used

  test(`${CALLS} equal calls at once make at most one upstream call a node, and are charged for these alone`, async () => {
    const nodes = await started()
    const go = Promise.withResolvers<void>()
    nodes.upstream.script('slow', { kind: 'whole', after: go.promise, usage: usageText(10, 5) })
    const calls = Array.from({ length: CALLS }, (_, index) => nodes.chat(index % 3, 'ann', ask('slow')))
    await Promise.all(nodes.gateways.map(({ url }) => untilOpen(url, CALLS_OF_NODE)))
    go.resolve()
    const answers = await Promise.all(calls)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(nodes.upstream.received('slow')).toHaveLength(3)
    expect(answers.filter((answer) => statusOf(answer) === 'miss')).toHaveLength(3)
    await expect.poll(() => charged(nodes)).toBe(3 * COST)
  })

  test('an answer that one node cached is returned by the other nodes', async () => {
    const nodes = await started()
    const first = await nodes.chat(0, 'ann', ask('m'))
    const others = [await nodes.chat(1, 'ann', ask('m')), await nodes.chat(2, 'ann', askStream('m'))]
    expect([first, ...others].map(statusOf)).toEqual(['miss', 'hit', 'hit'])
    expect(others[0]?.text).toBe(first.text)
    expect(nodes.upstream.received('m')).toHaveLength(1)
  })

  test(`${CALLS} equal calls of which one node is killed: the others get equal answers, and each that asked is charged once`, async () => {
    const nodes = await started()
    const go = Promise.withResolvers<void>()
    nodes.upstream.script('slow', { kind: 'whole', after: go.promise, usage: usageText(10, 5) })
    const calls = Array.from({ length: CALLS }, async (_, index) => ({
      node: index % 3,
      answer: await nodes.chat(index % 3, 'ann', ask('slow')).catch(() => undefined),
    }))
    await Promise.all(nodes.gateways.map(({ url }) => untilOpen(url, CALLS_OF_NODE)))
    await nodes.gateways[0]?.kill()
    go.resolve()
    const answers = await Promise.all(calls)
    expect(answers.every(({ node, answer }) => (answer === undefined) === (node === 0))).toBe(true)
    const said = answers.flatMap(({ answer }) => (answer ? [`${answer.status} ${answer.text}`] : []))
    expect(new Set(said).size).toBe(1)
    expect(nodes.upstream.received('slow')).toHaveLength(3)
    await expect.poll(() => charged(nodes)).toBe(2 * COST)
    // Its call may have cost something: that is charged when it is back, and never twice.
    await nodes.gateways[0]?.restart()
    const again = await nodes.chat(0, 'ann', ask('slow'))
    expect([statusOf(again), `${again.status} ${again.text}`]).toEqual(['hit', said[0]])
    expect(nodes.upstream.received('slow')).toHaveLength(3)
  })

  test("the answer of a killed node's call is not cached, and the other nodes call the upstream themselves", async () => {
    const nodes = await started()
    nodes.upstream.script(
      'slow',
      { kind: 'stream', events: 3, ending: 'stall' },
      { kind: 'stream', events: 3, usage: usageText(10, 5) },
    )
    const [killed] = nodes.gateways
    if (!killed) throw new Error('there is no node')
    const live = await Promise.all([1, 2].map(() => open(killed.url, askStream('slow'), { key: 'ann' })))
    for (const one of live) await one.until('word')
    await killed.kill()
    for (const one of live) expect((await one.end()).broken).toBe(true)
    const answers = await Promise.all([1, 2].map((node) => nodes.chat(node, 'ann', askStream('slow'))))
    for (const { text } of answers) expect(text).toContain('[DONE]')
    const asked = nodes.upstream.received('slow').length
    expect(asked).toBeGreaterThanOrEqual(2)
    expect(asked).toBeLessThanOrEqual(3)
    expect(statusOf(await nodes.chat(2, 'ann', askStream('slow')))).toBe('hit')
  })
})
