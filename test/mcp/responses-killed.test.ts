import { textTool } from '@sluice/simulator'
import { expect, onTestFinished, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { startMcpServer } from '../fixtures/mcp.ts'
import { roundOf } from '../fixtures/mcp-responses.ts'
import type { LiveResponse } from '../fixtures/client.ts'
import { frames } from '../fixtures/responses-behaviour.ts'
import { eventually } from '../fixtures/web-socket-client.ts'

const QUOTA = 100_000_000
const EACH = 20
/** Where a response is when the gateway is killed: in its first round, in a tool, in its second round. */
const PLACES = ['first', 'tool', 'second'] as const

test('a gateway that is killed during 60 responses charges each round and each call of a tool at most once, and holds nothing afterwards', async () => {
  const server = await startMcpServer({
    name: 'web',
    versions: ['2026-07-28'],
    tools: () => [
      textTool({ name: 'go' }, () => 'gone'),
      textTool({ name: 'wait' }, () => new Promise<string>(() => {})),
    ],
    ttlMs: 60_000,
  })
  onTestFinished(() => server.close())
  const fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
    // Only the kill ends a call of a tool.
    mcp: { servers: [{ name: 'web', url: server.url, timeout: '1h', price: { call: 0.001 } }] },
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
  }))
  onTestFinished(() => fixture.close())
  const begun = frames({ text: 'It is' }).slice(0, 6)
  const stalled = { kind: 'stream', frames: begun, ending: 'stall' } as const
  fixture.upstream.decide('m', ({ text }) => {
    if (text.includes('place first') || text.includes('"gone"')) return stalled
    const name = text.includes('place tool') ? 'web_wait' : 'web_go'
    return roundOf('responses', true, { calls: [{ id: 'call_1', name, input: '{}' }] })
  })
  const tools = [{ type: 'mcp', server_label: 'tools', server_url: '/mcp' }]
  const lives: { readonly place: string; readonly live: LiveResponse }[] = []
  const calls = PLACES.flatMap((place) => Array.from({ length: EACH }, () => place)).map((place) =>
    fixture
      .live('ann', { model: 'm', input: `place ${place}`, tools, stream: true }, { path: '/v1/responses' })
      .then((live) => {
        lives.push({ place, live })
        return live.end()
      })
      .catch(() => {}),
  )
  await eventually(() => {
    const hasText = (place: string): number =>
      lives.filter((one) => one.place === place && one.live.text().includes('output_text.delta')).length
    expect([hasText('first'), hasText('second')]).toEqual([EACH, EACH])
    const waiting = server.received('tools/call').filter(({ params }) => params?.['name'] === 'wait')
    expect(waiting).toHaveLength(EACH)
  })
  await fixture.gateway.kill()
  await Promise.all(calls)
  await fixture.gateway.restart()
  const database = databaseOf(fixture.gateway.dataDir)
  await eventually(() => expect(database.openHolds()).toEqual([]))
  const rows = database.usage()
  const charged = rows.reduce((sum, { quota }) => sum + quota, 0)
  expect(database.token('token-ann').remain_quota).toBe(QUOTA - charged)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  const parts = Map.groupBy(rows, ({ id }) => id.split('.').slice(1).join('.'))
  expect(Object.fromEntries([...parts].map(([part, of]) => [part, of.length]))).toEqual({
    '': 3 * EACH,
    '1.1': 2 * EACH,
    '2': EACH,
  })
  expect(parts.get('1.1')?.filter(({ quota }) => quota === 500)).toHaveLength(2 * EACH)
})
