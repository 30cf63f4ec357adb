import type { ClientRequest } from 'node:http'
import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { send } from '../fixtures/client.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, listed, startMcpServer, statelessRequest, type TestMcpServer } from '../fixtures/mcp.ts'

/** More calls than there are connections to a server. */
const CALLS = 300
/** What a key that was alone may have at one server. */
const MOST = 168

let fixture: Fixture
let web: TestMcpServer
beforeAll(async () => {
  web = await startMcpServer({
    name: 'web',
    versions: ['2026-07-28'],
    tools: () => [
      textTool({ name: 'wait', description: 'waits' }, ({ signal }) => {
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve('too late')))
      }),
      textTool({ name: 'go', description: 'goes' }, () => 'went'),
    ],
    ttlMs: 3_600_000,
  })
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    rate_limits: {},
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
    mcp: { servers: ['one', 'two'].map((name) => ({ name, url: web.url, timeout: '10m' })) },
  }))
})
afterAll(async () => {
  await fixture?.close()
  await web?.close()
})

test('calls of one key that do not end leave others their lists and calls at the same server', async () => {
  const { url } = fixture.gateway
  const calls: ClientRequest[] = []
  try {
    for (let index = 0; index < CALLS; index += 1) {
      const name = `${index % 2 === 0 ? 'one' : 'two'}_wait`
      const { body, headers } = statelessRequest('tools/call', { name, arguments: {} })
      calls.push(send(url, body, { path: '/mcp', key: 'ann', headers }))
    }
    const running = (): number => web.received('tools/call').length
    // On a busy machine, 300 connections at once take minutes.
    await expect.poll(running, { timeout: 240_000 }).toBeGreaterThanOrEqual(MOST)
    const { message } = await askMcp(url, 'bob', 'tools/call', { name: 'one_go', arguments: {} })
    expect(message.result).toMatchObject({ content: [{ text: 'went' }] })
    expect(listed((await askMcp(url, 'bob', 'tools/list')).message)).toHaveLength(4)
    expect(running()).toBe(MOST + 1)
  } finally {
    for (const one of calls) one.destroy()
  }
})

test('calls that waited for a place go on when others end', async () => {
  const answers = await Promise.all(
    Array.from({ length: CALLS }, (_, id) =>
      askMcp(fixture.gateway.url, 'ann', 'tools/call', { name: 'two_go', arguments: {} }, { id }),
    ),
  )
  expect(answers.filter(({ message }) => message.result?.['isError'] === undefined)).toHaveLength(CALLS)
})
