import { serveMcp, textTool } from '@sluice/simulator'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ONE, ZERO } from '../../domain/decimal.ts'
import type { McpServer } from '../../domain/mcp.ts'
import { NO_LIMIT } from '../../domain/rate-limit.ts'
import { McpServers } from './servers.ts'

const MINUTE_MS = 60_000
const SESSION = 'mcp-session-id'

/** Connections to a server with sessions, which has a tool that goes at once and one that waits. */
async function stage() {
  const begun = Promise.withResolvers<void>()
  const last = Promise.withResolvers<string>()
  const { url, server: listener } = await serveMcp({
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
  onTestFinished(() => void listener.close())
  /** Sessions that were ended. */
  const ended: unknown[] = []
  const sessions: unknown[] = []
  listener.on('request', ({ method, headers }) => {
    if (method === 'DELETE') ended.push(headers[SESSION])
    else if (headers[SESSION] !== undefined && !sessions.includes(headers[SESSION]))
      sessions.push(headers[SESSION])
  })
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
  /** The server, by an entry with these fields. */
  const server = (fields: Partial<McpServer> = {}) =>
    servers
      .of({ servers: [{ ...old, ...fields }], toolsets: [], isRestricted: false, approved: new Map() })
      .get('old')
  const { connection } = server() ?? {}
  const call = (name: string, tokenId: number) =>
    connection?.request({
      method: 'tools/call',
      params: { name },
      tokenId,
      signal: new AbortController().signal,
    })
  return { call, server, begun: begun.promise, finish: () => last.resolve('done'), ended, sessions }
}

test('sessions at a server end after ten minutes without use, and not while a request runs', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { call, begun, finish, ended, sessions } = await stage()
  await call('go', 1)
  const waiting = call('wait', 2)
  await begun
  vi.advanceTimersByTime(9 * MINUTE_MS)
  expect(ended).toEqual([])
  vi.advanceTimersByTime(2 * MINUTE_MS)
  await expect.poll(() => ended).toEqual([sessions[0]])
  finish()
  await waiting
  vi.advanceTimersByTime(11 * MINUTE_MS)
  await expect.poll(() => ended).toEqual(sessions)
  await call('go', 1)
  expect(sessions).toHaveLength(3)
})

test('a change of a server ends the sessions in which nothing runs, and the others after their last request', async () => {
  const { call, server, begun, finish, ended, sessions } = await stage()
  const waiting = call('wait', 1)
  await begun
  await call('go', 2)
  server({ timeout: MINUTE_MS })
  await expect.poll(() => ended).toEqual([sessions[1]])
  finish()
  expect(await waiting).toMatchObject({ result: { content: [{ text: 'done' }] } })
  await expect.poll(() => ended).toEqual([sessions[1], sessions[0]])
})

test('a server stays connected while its price, its limit or its approval change', async () => {
  const { server } = await stage()
  const before = server()
  const changes = { price: { call: ONE, tools: new Map() }, approve: 'always' } as const
  const after = server(changes)
  expect(after?.server).toMatchObject(changes)
  expect(after?.connection).toBe(before?.connection)
  expect(after?.lists).toBe(before?.lists)
})
