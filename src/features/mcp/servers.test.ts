import { serveMcp, textTool } from '@sluice/simulator'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ZERO } from '../../domain/decimal.ts'
import type { McpServer } from '../../domain/mcp.ts'
import { NO_LIMIT } from '../../domain/rate-limit.ts'
import { McpServers } from './servers.ts'

const MINUTE_MS = 60_000
const SESSION = 'mcp-session-id'

test('sessions at a server end after ten minutes without use, and not while a request runs', async () => {
  const begun = Promise.withResolvers<void>()
  const last = Promise.withResolvers<string>()
  const { url, server } = await serveMcp({
    name: 'old',
    versions: ['2025-11-25'],
    tools: () => [
      textTool({ name: 'go' }, () => 'went'),
      textTool({ name: 'wait' }, () => {
        begun.resolve()
        return last.promise
      }),
    ],
  })
  onTestFinished(() => void server.close())
  /** Sessions that were ended. */
  const ended: unknown[] = []
  const sessions: unknown[] = []
  server.on('request', ({ method, headers }) => {
    if (method === 'DELETE') ended.push(headers[SESSION])
    else if (headers[SESSION] !== undefined && !sessions.includes(headers[SESSION]))
      sessions.push(headers[SESSION])
  })
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const servers = new McpServers('mark')
  onTestFinished(() => servers.close())
  const old: McpServer = {
    name: 'old',
    url,
    era: '2025-11-25',
    auth: { kind: 'none' },
    timeout: 60 * MINUTE_MS,
    list_ttl: MINUTE_MS,
    most_answer: 1_000,
    price: { call: ZERO, tools: new Map() },
    rate_limit: NO_LIMIT,
    approve: 'first',
  }
  const { connection } =
    servers.of({ servers: [old], toolsets: [], isRestricted: false, approved: new Map() }).get('old') ?? {}
  const call = (name: string, tokenId: number) =>
    connection?.request({
      method: 'tools/call',
      params: { name },
      tokenId,
      signal: new AbortController().signal,
    })
  await call('go', 1)
  const waiting = call('wait', 2)
  await begun.promise
  vi.advanceTimersByTime(9 * MINUTE_MS)
  expect(ended).toEqual([])
  vi.advanceTimersByTime(2 * MINUTE_MS)
  await expect.poll(() => ended).toEqual([sessions[0]])
  last.resolve('done')
  await waiting
  vi.advanceTimersByTime(11 * MINUTE_MS)
  await expect.poll(() => ended).toEqual(sessions)
  await call('go', 1)
  expect(sessions).toHaveLength(3)
})
