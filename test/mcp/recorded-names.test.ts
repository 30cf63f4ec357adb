// docs/mcp.md: Servers that fail; docs/operations.md: Metrics.
import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { plainConfiguration, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp, type McpMessage, startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'

let fixture: Fixture
const servers: TestMcpServer[] = []
beforeAll(async () => {
  for (const name of ['one', 'loose', 'down'])
    servers.push(
      await startMcpServer({
        name,
        versions: ['2026-07-28'],
        tools: () => [textTool({ name: 'echo', description: 'echoes' }, () => 'text')],
        prompts: [{ definition: { name: 'review' }, answer: () => ({ messages: [] }) }],
        templates: [
          {
            definition: { uriTemplate: 'file:///{name}.md', name: 'notes' },
            answer: ({ params }) => ({ contents: [{ uri: params['uri'], text: 'a note' }] }),
          },
        ],
        complete: () => ({ values: [] }),
        cacheScope: 'private',
      }),
    )
  await servers[2]?.close()
  fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    const [one, loose, down] = servers.map(({ url }) => url)
    return {
      ...plain,
      users: [...plain.users, user(4, 'bob', [token('bob')])],
      mcp: {
        servers: [
          { name: 'one', url: one },
          { name: 'loose', url: loose, approve: 'never' },
          { name: 'down', url: down },
        ],
      },
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  await Promise.all(servers.slice(0, 2).map((server) => server.close()))
})

const ask = (key: string, method: string, params: object) =>
  askMcp(fixture.gateway.url, key, method, { ...params })
const codeOf = ({ result }: McpMessage): unknown =>
  (result?.['_meta'] as Record<string, unknown> | undefined)?.['sluice/code']
/** Asks for a tool, for a prompt, and for the values of a prompt's argument, by the same name. */
const askAll = async (key: string, name: string) => {
  const ref = { type: 'ref/prompt', name }
  return [
    await ask(key, 'tools/call', { name, arguments: {} }),
    await ask(key, 'prompts/get', { name }),
    await ask(key, 'completion/complete', { ref, argument: { name: 'a', value: 'b' } }),
  ].map(({ message }) => message.error?.code ?? codeOf(message))
}
const rows = () => databaseOf(fixture.gateway.dataDir).usage()
/** All that is written of calls. */
const recorded = async (): Promise<string> => {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
  return text + fixture.gateway.logs() + JSON.stringify(rows())
}

const UNKNOWN = -32_602
const FAILED = -32_603
const UNAVAILABLE = 'server_unavailable'

test.each(['one', 'down'])(
  'a name that no list may have is unknown and recorded nowhere: of the server %s',
  async (server) => {
    const names = [`${server}_${'x'.repeat(128 - server.length)}`, `${server}_x x`]
    for (const name of names) {
      expect(await askAll('ann', name)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
      expect(await recorded()).not.toContain(name)
    }
  },
)

test('a name that the list of its server has not is unknown and recorded nowhere', async () => {
  expect(await askAll('ann', 'one_invented')).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
  expect(await recorded()).not.toContain('invented')
})

test('a URI that fits a template is recorded nowhere', async () => {
  const { message } = await ask('ann', 'resources/read', { uri: 'file:///invented.md' })
  expect(message.result).toMatchObject({ contents: [{ text: 'a note' }] })
  await expect.poll(recorded).toContain('"upstreamModel":"resource"')
  expect(await recorded()).not.toContain('invented')
})

test('while the list of a server cannot be read, calls have the names that were listed before, and no others', async () => {
  for (const method of ['tools/list', 'prompts/list']) await ask('ann', method, {})
  await Promise.all(servers.slice(0, 2).map((server) => server.close()))
  for (const server of ['one', 'loose', 'down']) {
    expect(await askAll('bob', `${server}_invented`)).toEqual([UNAVAILABLE, FAILED, FAILED])
    await ask('bob', 'tools/call', { name: `${server}_echo`, arguments: {} })
    await ask('bob', 'prompts/get', { name: `${server}_review` })
  }
  const models = () => rows().map(({ model }) => model)
  await expect
    .poll(models)
    .toEqual(['one_tool', 'one_echo', 'loose_tool', 'loose_echo', 'down_tool', 'down_tool'])
  const text = await recorded()
  expect(text).not.toContain('invented')
  for (const name of ['one_prompt', 'one_review', 'loose_review', 'down_prompt'])
    expect(text).toContain(`{model="${name}"`)
  expect(text).not.toContain('down_review')
})
