import { textTool } from '@sluice/simulator'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame, errorBody, finishFrame, roleFrame } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { frames } from '../fixtures/responses-behaviour.ts'
import { watchedFetch } from '../fixtures/watched-fetch.ts'
import { eventually, isEnd, openSocket, type SocketEvent } from '../fixtures/web-socket-client.ts'

const EARLY = 'src/features/early-stream/early-stream.ts'
/** A gateway that looks at its streams every 20 ms, and regards one as silent after 60 ms. */
const copy = await patchedProgram([
  { file: EARLY, text: 'KEEP_ALIVE_MS = 15_000', by: 'KEEP_ALIVE_MS = 60' },
  { file: 'src/call/streamed-response.ts', text: 'MAX_SILENCE_MS = 15_000', by: 'MAX_SILENCE_MS = 60' },
  ...[EARLY, 'src/call/attempts.ts'].map((file) => ({
    file,
    text: 'this.#tick(performance.now()), 1_000)',
    by: 'this.#tick(performance.now()), 20)',
  })),
])
const TOOL = { type: 'mcp', server_label: 'tools', server_url: '/mcp', require_approval: 'never' } as const
const ASKED = { model: 'responses', input: 'hi', tools: [TOOL] }
const TIDES = { id: 'call_1', name: 'web_slow', input: '{}' }
const COMMENT = ': keep-alive\n\n'

let fixture: Fixture
let web: TestMcpServer
let slow = Promise.withResolvers<string>()
beforeAll(async () => {
  web = await startMcpServer({
    name: 'web',
    versions: ['2026-07-28'],
    tools: () => [textTool({ name: 'slow', description: 'waits' }, () => slow.promise)],
    ttlMs: 3_600_000,
  })
  fixture = await startFixture(
    (upstream) => ({
      options: { early_stream: '60ms', cache: {}, retries: 0 },
      models: priced(['chat', 'responses']),
      channels: [
        channel('chat', upstream.baseUrl('chat')),
        channel('responses', upstream.baseUrl('responses'), { protocol: 'responses' }),
      ],
      mcp: { servers: [{ name: 'web', url: web.url }] },
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  slow.resolve('late')
  await fixture?.close()
  await web?.close()
  copy.discard()
})

const isDelta = ({ type }: SocketEvent): boolean => type === 'response.output_text.delta'
const isInProgress = ({ type }: SocketEvent): boolean => type === 'response.in_progress'

const SILENT = {
  chat: [[roleFrame() + contentFrame('Hello')], [contentFrame(' there.'), finishFrame()]],
  responses: [
    [frames({ text: 'Hello there.' }).slice(0, 5).join('')],
    frames({ text: 'Hello there.' }).slice(5),
  ],
} as const

describe.each(['chat', 'responses'] as const)('a turn over a WebSocket, from a channel of %s', (model) => {
  test.each([{}, { 'cache-control': 'max-age=60' }])(
    'gets response.in_progress while its upstream is silent, with headers %o',
    async (headers) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const [before, after] = SILENT[model]
      const rest = { after: promise, frames: after }
      fixture.upstream.script(model, { kind: 'stream', frames: before, rest, ending: 'no done' })
      const socket = await openSocket(fixture.gateway.url, 'ann', { headers })
      socket.send({ type: 'response.create', model, input: 'hi' })
      await socket.next(isDelta)
      expect(await socket.next(isInProgress)).toMatchObject({ response: { status: 'in_progress' } })
      await socket.next(isInProgress)
      resolve()
      expect((await socket.next(isEnd)).type).toBe('response.completed')
      socket.socket.terminate()
    },
  )
})

/** A response with a tool of the gateway, whose model and tool are silent until they are told to go on. */
function scriptSilence() {
  const head = Promise.withResolvers<void>()
  const middle = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  slow = Promise.withResolvers<string>()
  const asking = frames({ text: 'One moment.', calls: [TIDES] })
  const answers = [
    {
      after: head.promise,
      frames: [asking.slice(0, 5).join('')],
      rest: { after: middle.promise, frames: asking.slice(5) },
    },
    { after: second.promise, frames: frames({ text: 'High at noon.' }) },
  ]
  let round = 0
  fixture.upstream.script('responses')
  fixture.upstream.decide('responses', () => ({
    kind: 'stream',
    ending: 'no done',
    frames: [],
    ...answers[round++],
  }))
  return {
    head: head.resolve,
    middle: middle.resolve,
    tool: () => slow.resolve('noon'),
    second: second.resolve,
  }
}

/** Whether there were two events `response.in_progress` after the last event of another type, which is this one. */
const isSilentAfter = (text: string, type: string): boolean => {
  const types = [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
  const last = types.findLastIndex((name) => name !== 'response.in_progress')
  return types[last] === type && types.length > last + 2
}

test('a response with the tools of the gateway is kept alive in each round and while a tool runs', async () => {
  const go = scriptSilence()
  const live = await fixture.live('ann', { ...ASKED, stream: true }, { path: '/v1/responses' })
  expect([live.status, live.headers['content-type']]).toEqual([200, 'text/event-stream'])
  await live.until(COMMENT + COMMENT)
  go.head()
  const silentAfter = (type: string) =>
    eventually(() => expect(isSilentAfter(live.text(), type), live.text()).toBe(true))
  await silentAfter('response.output_text.delta')
  go.middle()
  await silentAfter('response.mcp_call_arguments.done')
  go.tool()
  await silentAfter('response.output_item.done')
  go.second()
  const { text } = await live.end()
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(
    ([, data]) =>
      JSON.parse(String(data)) as SocketEvent & { sequence_number: number; response: { id: string } },
  )
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
  const id = events[0]?.response.id
  for (const { response } of events.filter(isInProgress))
    expect(response).toMatchObject({ id, status: 'in_progress', output: [], completed_at: null })
  expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { id, status: 'completed' } })
  expect(text.slice(text.indexOf('event: '))).not.toContain(COMMENT)
})

test('the official client reads such a response', async () => {
  const go = scriptSilence()
  const fetching = watchedFetch((read) => {
    if (read.includes(COMMENT)) go.head()
    if (isSilentAfter(read, 'response.output_text.delta')) go.middle()
    if (isSilentAfter(read, 'response.mcp_call_arguments.done')) go.tool()
    if (isSilentAfter(read, 'response.output_item.done')) go.second()
  })
  const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, fetch: fetching })
  const response = await client.responses.stream({ ...ASKED, input: 'hi' }).finalResponse()
  expect(response.output_text).toBe('One moment.High at noon.')
})

test('a turn over a WebSocket that runs a tool of the gateway is kept alive', async () => {
  const go = scriptSilence()
  go.head()
  go.middle()
  go.second()
  const socket = await openSocket(fixture.gateway.url, 'ann')
  socket.send({ type: 'response.create', ...ASKED })
  await socket.next(({ type }) => type === 'response.mcp_call_arguments.done')
  await socket.next(isInProgress)
  go.tool()
  expect((await socket.next(isEnd)).type).toBe('response.completed')
  socket.socket.terminate()
})

test('an error of the first round behind the early head is an event', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const body = errorBody('The picture is too large.')
  fixture.upstream.script('responses', { kind: 'status', status: 400, body, after: promise })
  const live = await fixture.live('ann', { ...ASKED, stream: true }, { path: '/v1/responses' })
  await live.until(COMMENT)
  resolve()
  const { text, headers } = await live.end()
  expect(JSON.parse(text.slice(text.lastIndexOf('data: ') + 6))).toMatchObject({
    type: 'response.failed',
    response: { status: 'failed', error: { message: 'The picture is too large.' } },
  })
  await eventually(() =>
    expect(
      databaseOf(fixture.gateway.dataDir)
        .usage()
        .find(({ id }) => id === headers['x-request-id']),
    ).toMatchObject({ error_status: 200 }),
  )
})

test('an error over a WebSocket states its own status', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const body = errorBody('The picture is too large.')
  fixture.upstream.script('responses', { kind: 'status', status: 400, body, after: promise })
  const socket = await openSocket(fixture.gateway.url, 'ann')
  socket.send({ type: 'response.create', ...ASKED })
  await eventually(() => expect(fixture.upstream.received('responses')).toHaveLength(1))
  resolve()
  expect(await socket.next(isEnd)).toMatchObject({ type: 'error', status: 400 })
  socket.socket.terminate()
})
