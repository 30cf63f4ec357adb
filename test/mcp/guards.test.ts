import { textTool, ToolError } from '@sluice/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { open } from '../fixtures/client.ts'
import { contentOf } from '../fixtures/content.ts'
import { ADMIN, ADMIN_USER, plainConfiguration } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import {
  askMcp,
  beginSession,
  startMcpServer,
  statelessRequest,
  type TestMcpServer,
} from '../fixtures/mcp.ts'

let fixture: Fixture
let server: TestMcpServer
const cancelled: string[] = []
beforeAll(async () => {
  server = await startMcpServer({
    name: 'echo',
    versions: ['2026-07-28', '2025-11-25'],
    tools: () => [
      {
        definition: { name: 'echo', description: 'echoes', inputSchema: { type: 'object' } },
        answer: ({ arguments: { say } }) => ({
          content: [
            { type: 'text', text: `said ${String(say)}` },
            { type: 'resource', resource: { uri: 'a://b', text: `file ${String(say)}` } },
          ],
          structuredContent: { deep: [{ say }] },
        }),
      },
      textTool({ name: 'steps', description: 'reports' }, (given) => {
        given.notify('notifications/progress', { progress: 1, message: 'a melon' })
        return 'done'
      }),
      textTool({ name: 'fails', description: 'fails' }, () => {
        throw new ToolError(-32_050, 'melon and cherry')
      }),
      textTool({ name: 'waits', description: 'waits' }, async (call) => {
        const { signal, arguments: given } = call
        call.notify('notifications/progress', { progress: 1 })
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        cancelled.push(String(given['name']))
        return 'never'
      }),
    ],
    prompts: [
      {
        definition: { name: 'ask', arguments: [{ name: 'say' }] },
        answer: ({ arguments: { say } }) => ({
          messages: [{ role: 'user', content: { type: 'text', text: `say ${String(say)}` } }],
        }),
      },
    ],
  })
  fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    return {
      ...plain,
      users: [...plain.users, ADMIN_USER],
      content_log: { what: 'full', readers: 100 },
      guards: [
        { name: 'in', do: 'redact', match: { words: ['plum'] }, where: ['tool_arguments'] },
        { name: 'meta', do: 'redact', match: { words: ['quince'] }, where: ['input'] },
        { name: 'stop', do: 'block', match: { words: ['cherry'] }, where: ['tool_arguments'] },
        { name: 'out', do: 'redact', match: { words: ['melon'] }, where: ['tool_results'] },
        { name: 'shut', do: 'block', match: { words: ['grape'] }, where: ['tool_results'] },
        { name: 'other', do: 'block', match: { words: ['said'] }, models: ['new_other'] },
      ],
      mcp: {
        servers: [
          { name: 'new', url: server.url, price: { call: 0.001 } },
          { name: 'old', url: server.url, era: '2025-11-25', price: { call: 0.001 } },
        ],
      },
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  await server?.close()
})

const ROOT_ACCOUNT = { id: 1, accessToken: 'root-access-token' }
const say = (text: string, options = {}) =>
  askMcp(fixture.gateway.url, 'ann', 'tools/call', { name: 'new_echo', arguments: { say: text } }, options)
const row = async (id: unknown) =>
  (await manage(fixture.gateway.url, ADMIN, `GET /api/log/${String(id)}`)).data

test('guards change arguments before the server gets them', async () => {
  const answer = await say('a plum')
  expect(server.received('tools/call').at(-1)?.params?.['arguments']).toEqual({ say: 'a [REDACTED]' })
  expect(answer.headers['x-gateway-guards']).toContain('in=redacted;count=1')
  expect(await row(answer.headers['x-request-id'])).toMatchObject({
    guards: expect.stringContaining('in=redacted;count=1'),
  })
})

test.each(['new', 'old'])('guards of input change what _meta says to the server %s', async (name) => {
  const meta = {
    'example.com/patient': ['a quince'],
    'io.modelcontextprotocol/clientCapabilities': { experimental: { note: 'a quince' } },
  }
  const params = { name: `${name}_echo`, arguments: { say: 'hello' } }
  const answer = await askMcp(fixture.gateway.url, 'ann', 'tools/call', params, { meta })
  const sent = server.received('tools/call').at(-1)?.params?.['_meta']
  expect(sent).toMatchObject({ 'example.com/patient': ['a [REDACTED]'] })
  if (name === 'new')
    expect(sent).toMatchObject({
      'io.modelcontextprotocol/clientCapabilities': { experimental: { note: 'a [REDACTED]' } },
    })
  expect(JSON.stringify(sent)).not.toContain('quince')
  const id = String(answer.headers['x-request-id'])
  const { parts } = await contentOf(fixture.gateway.url, ROOT_ACCOUNT, id)
  expect(parts.request_sent?.text).toContain('"example.com/patient":["a [REDACTED]"]')
})

test('blocked arguments are an error, and cost nothing', async () => {
  const before = server.received('tools/call').length
  const { status, message } = await say('a cherry')
  expect(status).toBe(200)
  expect(message).toMatchObject({ id: 1, error: { code: 400, data: { code: 'guard_blocked' } } })
  const prompt = await askMcp(fixture.gateway.url, 'ann', 'prompts/get', {
    name: 'new_ask',
    arguments: { say: 'cherry' },
  })
  expect(prompt.message.error).toMatchObject({ code: 400, data: { code: 'guard_blocked' } })
  expect(server.received('tools/call').length).toBe(before)
  expect(server.received('prompts/get')).toEqual([])
})

test('every text of a result is checked, also of progress and of errors', async () => {
  const { message } = await say('a melon')
  expect(message.result).toMatchObject({
    content: [{ text: 'said a [REDACTED]' }, { resource: { uri: 'a://b', text: 'file a [REDACTED]' } }],
    structuredContent: { deep: [{ say: 'a [REDACTED]' }] },
  })
  const ask = (name: string) =>
    askMcp(fixture.gateway.url, 'ann', 'tools/call', { name, arguments: {} }, { meta: { progressToken: 1 } })
  expect((await ask('new_steps')).notifications[0]?.params).toMatchObject({ message: 'a [REDACTED]' })
  expect((await ask('new_fails')).message.error).toEqual({ code: -32_050, message: '[REDACTED] and cherry' })
})

test('the error of a server is recorded without what any guard finds, at any place', async () => {
  const { headers } = await askMcp(fixture.gateway.url, 'ann', 'tools/call', {
    name: 'new_fails',
    arguments: {},
  })
  const words = async (): Promise<string | undefined> => {
    const found = (await row(headers['x-request-id'])) as { error?: { message: string } } | undefined
    return found?.error?.message
  }
  await expect.poll(words).toBeDefined()
  expect(await words()).toBe('[REDACTED] and [REDACTED]')
})

test('a blocked result is replaced and charged', async () => {
  const answer = await say('a grape')
  expect(answer.text).not.toContain('grape')
  expect(answer.message.result).toMatchObject({ isError: true, _meta: { 'sluice/code': 'guard_blocked' } })
  expect(await row(answer.headers['x-request-id'])).toMatchObject({ quota: 500, note: 'guard_blocked' })
})

test('the content log has the messages as the client sent and got them', async () => {
  const answer = await say('a fig')
  const id = String(answer.headers['x-request-id'])
  const content = JSON.stringify(await contentOf(fixture.gateway.url, ROOT_ACCOUNT, id))
  expect(content).toContain('said a fig')
  expect(content).toContain('tools/call')
  expect(content).not.toContain('sk-ann')
})

test.each(['new', 'old'])(
  'a client that leaves cancels its call at the server %s, and is charged',
  async (name) => {
    const params = { name: `${name}_waits`, arguments: { name } }
    const { body, headers } = statelessRequest('tools/call', params, { meta: { progressToken: 1 } })
    const live = await open(fixture.gateway.url, body, { path: '/mcp', key: 'ann', headers })
    await live.until('notifications/progress')
    live.abort()
    await expect.poll(() => cancelled).toContain(name)
    await expect
      .poll(() => row(live.headers['x-request-id']))
      .toMatchObject({ quota: 500, reason: 'client_gone' })
  },
)

test('a call that is stopped after it was sent is cancelled at the server, and charged', async () => {
  const params = { name: 'new_waits', arguments: { name: 'stopped' } }
  const { body, headers } = statelessRequest('tools/call', params, { meta: { progressToken: 1 } })
  const live = await open(fixture.gateway.url, body, { path: '/mcp', key: 'ann', headers })
  await live.until('notifications/progress')
  const id = String(live.headers['x-request-id'])
  await manage(fixture.gateway.url, ADMIN, `POST /api/running/${id}/stop`)
  await expect.poll(() => cancelled).toContain('stopped')
  await expect.poll(() => row(id)).toMatchObject({ quota: 500, reason: 'stopped' })
})

test('a client with a session cancels its call with a notification', async () => {
  const session = await beginSession(fixture.gateway.url, 'ann')
  const asked = session.ask('tools/call', { name: 'new_waits', arguments: { name: 'told' } }, 'call')
  await expect
    .poll(() => server.received('tools/call').some(({ params }) => JSON.stringify(params).includes('told')))
    .toBe(true)
  await session.notify('notifications/cancelled', { requestId: 'call' })
  await expect.poll(() => cancelled).toContain('told')
  expect((await asked).text).toBe('')
})
