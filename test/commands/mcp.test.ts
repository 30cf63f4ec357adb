import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  commandOn,
  GATEWAY_STATES,
  inGatewayState,
  type Outcome,
  SECRET,
  untilItRuns,
} from '../fixtures/command.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'

let fixture: Fixture
let server: TestMcpServer
beforeAll(async () => {
  server = await startMcpServer({
    name: 'tools',
    versions: ['2026-07-28'],
    tools: () => [textTool({ name: 'read', description: 'reads a file' }, () => 'content')],
  })
  fixture = await startFixture(
    (upstream) => ({
      ...plainConfiguration(upstream.baseUrl('m')),
      mcp: { servers: [{ name: 'files', url: server.url, approve: 'always', price: { call: 0.5 } }] },
    }),
    { env: { GATEWAY_SECRET: SECRET } },
  )
})
afterAll(async () => {
  await fixture?.close()
  await server?.close()
})

const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'mcp', ...args)

describe.each(GATEWAY_STATES)('sluice mcp, %s', (manner) => {
  test('sluice mcp list shows all servers with price and place', async () => {
    const { code, out, err } = await inGatewayState(manner, fixture.gateway, () => run('list'))
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const state = manner === 'while the gateway runs' ? 'ok' : 'unknown'
    expect(out).toMatch(
      new RegExp(`^NAME .*\\nfiles +${state} +\\S+ +0\\.5 +always +gateway\\.yaml +http\\S+\\n$`),
    )
  })
})

test('sluice mcp approves the present definition of a tool, which clients then see', async () => {
  await untilItRuns(fixture.gateway)
  const go = async () =>
    (await askMcp(fixture.gateway.url, 'ann', 'tools/call', { name: 'files_read' })).message
  expect((await go()).error?.data).toEqual({ code: 'tool_withheld' })
  const [tool] = JSON.parse((await run('tools', 'files', '--json')).out) as {
    digest: string
    state: string
  }[]
  expect(tool?.state).toBe('new')
  expect((await run('show', 'files', 'read')).out).toContain('reads a file')
  const wrong = await run('approve', 'files', 'read', 'another')
  expect([wrong.code, wrong.err]).toEqual([1, 'sluice: the tool has another definition now\n'])
  const { code, out } = await run('approve', 'files', 'read', String(tool?.digest))
  expect([code, out]).toEqual([0, 'The tool "read" of the server "files" is approved.\n'])
  expect((await go()).result).toBeDefined()
})

test('sluice mcp refuses to list the tools of a server that there is not', async () => {
  await untilItRuns(fixture.gateway)
  const { code, out, err } = await run('tools', 'flies')
  expect([code, out, err]).toEqual([1, '', 'sluice: there is no server "flies"\n'])
})

test('without a running gateway the servers cannot be asked for their tools', async () => {
  const { code, err } = await inGatewayState('while it does not', fixture.gateway, () => run('tools'))
  expect([code, err]).toEqual([1, expect.stringContaining('no gateway runs on this data folder')])
})
