import { setTimeout as sleep } from 'node:timers/promises'
import { textTool } from '@sluice/simulator'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call, CERTAINLY_GONE_MS } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { PROTOCOLS } from '../fixtures/guarded-dialects.ts'
import { askMcp, listed, startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'
import { frames } from '../fixtures/responses-behaviour.ts'
import { type Round, roundOf, scriptRounds } from '../fixtures/mcp-responses.ts'
import { eventually, openSocket } from '../fixtures/web-socket-client.ts'

type Mcp = OpenAI.Responses.Tool.Mcp
type Created = OpenAI.Responses.ResponseCreateParamsNonStreaming

const SEARCH = {
  name: 'search',
  description: 'Finds pages',
  inputSchema: { type: 'object', properties: { q: { type: 'string' } } },
  annotations: { readOnlyHint: true },
}
/** Quota units of a call of `search`, and of every other tool. */
const SEARCH_PRICE = 5_000
const TOOL: Mcp = { type: 'mcp', server_label: 'tools', server_url: '/mcp', require_approval: 'never' }
const TIDES = { id: 'call_1', name: 'web_search', input: '{"q":"tides"}' }
const BOB = { id: 4, accessToken: 'the-access-token-of-bob' }
const ROUNDS: readonly Round[] = [
  { calls: [TIDES], tokens: [100, 7] },
  { text: 'High at noon.', tokens: [130, 9] },
]

let fixture: Fixture
let web: TestMcpServer
let slow = Promise.withResolvers<string>()
let isCancelled = false
beforeAll(async () => {
  web = await startMcpServer({
    name: 'web',
    versions: ['2026-07-28'],
    tools: () => [
      textTool(SEARCH, ({ arguments: { q } }) => `found ${String(q)}`),
      textTool({ name: 'other.one', description: 'has a dot' }, () => 'other'),
      textTool({ name: 'slow', description: 'waits' }, async ({ signal }) => {
        signal.addEventListener('abort', () => (isCancelled = true))
        return slow.promise
      }),
      {
        definition: { name: 'broken', description: 'fails', inputSchema: { type: 'object' } },
        answer: () => ({ content: [{ type: 'text', text: 'no luck' }], isError: true }),
      },
    ],
    ttlMs: 3_600_000,
  })
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, public_url: 'https://ai.example.com', keep_responses: '1h' },
    models: priced([...PROTOCOLS, 'busy']),
    channels: [
      ...PROTOCOLS.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
      channel('busy', upstream.baseUrl('busy'), { protocol: 'responses' }),
    ],
    mcp: {
      servers: [
        { name: 'web', url: web.url, price: { call: 0.001, tools: { search: 0.01 } } },
        { name: 'hung', url: web.url, timeout: '1s' },
      ],
      toolsets: [
        { name: 'all', tools: ['*.*'] },
        { name: 'searching', tools: ['web.search'] },
        { name: 'of-others', tools: ['*.*'], users: ['bob'] },
      ],
    },
    users: [
      ROOT,
      ADMIN_USER,
      user(2, 'ann', [
        token('ann'),
        token('one', { rate_limit: { parallel: 1 } }),
        token('few', { rate_limit: { requests: 3 } }),
        token('brief', { rate_limit: { requests: 3 } }),
        token('little', { rate_limit: { requests: 2 } }),
      ]),
      user(BOB.id, 'bob', [token('bob')], { access_token: BOB.accessToken }),
      user(5, 'poor', [token('poor', { remain_quota: SEARCH_PRICE + 700 })]),
      user(6, 'tight', [token('tight', { remain_quota: 4_000 })]),
    ],
  }))
})
afterAll(async () => {
  slow.resolve('late')
  await fixture?.close()
  await web?.close()
})

const client = (key = 'ann') =>
  new OpenAI({ apiKey: `sk-${key}`, baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
const asked = (fields: Partial<Created> = {}): Created => ({
  model: 'responses',
  input: 'When is the tide high?',
  tools: [TOOL],
  ...fields,
})
const respond = (fields: Partial<Created> = {}, key = 'ann') => client(key).responses.create(asked(fields))
const script = (...rounds: readonly Round[]): void => scriptRounds(fixture.upstream, 'responses', ...rounds)
const requests = (lane = 'responses') =>
  fixture.upstream.received(lane).map(({ text }) => JSON.parse(text) as Record<string, unknown>)
const roundOfResponses = (round: Round) => roundOf('responses', false, round)
const rowsOf = (id: string) =>
  databaseOf(fixture.gateway.dataDir)
    .usage()
    .filter((row) => row.id === id || row.id.startsWith(`${id}.`))
const calledTools = (name: string): number =>
  web.received('tools/call').filter(({ params }) => params?.['name'] === name).length
const refusal = async (fields: object, key = 'ann') => {
  const { status, text } = await call(fixture.gateway.url, asked(fields), { key, path: '/v1/responses' })
  return { status, error: (JSON.parse(text) as { error: Record<string, unknown> }).error }
}

describe.each(PROTOCOLS)('over a %s channel', (model) => {
  test.each([false, true])(
    'the tool is called and the model reads its result, streamed: %s',
    async (stream) => {
      scriptRounds(fixture.upstream, model, ...ROUNDS)
      const before = calledTools('search')
      const whole = stream
        ? await client()
            .responses.stream({ ...asked({ model }), stream: true })
            .finalResponse()
        : await respond({ model })
      expect(whole.status).toBe('completed')
      // Gemini's signatures are in items of reasoning.
      expect(whole.output.filter(({ type }) => type !== 'reasoning')).toMatchObject([
        {
          type: 'mcp_list_tools',
          server_label: 'tools',
          tools: expect.arrayContaining([
            {
              name: 'web_search',
              description: 'Finds pages',
              input_schema: SEARCH.inputSchema,
              annotations: SEARCH.annotations,
            },
          ]),
        },
        {
          type: 'mcp_call',
          status: 'completed',
          name: 'web_search',
          server_label: 'tools',
          arguments: '{"q":"tides"}',
          output: 'found tides',
          error: null,
        },
        { type: 'message', content: [{ type: 'output_text', text: 'High at noon.' }] },
      ])
      expect(whole.usage).toMatchObject({ input_tokens: 230, output_tokens: 16, total_tokens: 246 })
      expect(whole.tools).toEqual([TOOL])
      expect(calledTools('search') - before).toBe(1)
      expect(fixture.upstream.received(model).at(-1)?.text).toContain('found tides')
    },
  )
})

test('each round and each call of a tool is a call with its own row and charge', async () => {
  script(...ROUNDS)
  const { response } = await respondRaw()
  const rows = rowsOf(String(response.headers['x-request-id']))
  expect(rows.map(({ id, model, quota }) => [id.split('.').slice(1).join('.'), model, quota])).toEqual(
    expect.arrayContaining([
      ['', 'responses', 100 + 4 * 7],
      ['1.1', 'web_search', SEARCH_PRICE],
      ['2', 'responses', 130 + 4 * 9],
    ]),
  )
  expect(rows).toHaveLength(3)
  expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([])
})

async function respondRaw(fields: object = {}, key = 'ann') {
  const response = await call(fixture.gateway.url, asked(fields), { key, path: '/v1/responses' })
  return { response, body: JSON.parse(response.text) as OpenAI.Responses.Response }
}

test('a stream has one beginning, one end, numbers without gaps, and items one after another', async () => {
  script({ text: 'Let me look.', calls: [TIDES, { ...TIDES, id: 'call_2' }] }, { text: 'High at noon.' })
  const events: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client().responses.create({ ...asked(), stream: true })) events.push(event)
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
  const types = events.map(({ type }) => type)
  expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress'])
  expect(types.filter((type) => type === 'response.created' || type === 'response.completed')).toEqual([
    'response.created',
    'response.completed',
  ])
  expect(types.at(-1)).toBe('response.completed')
  const open: number[] = []
  const items: unknown[] = []
  for (const event of events)
    if (event.type === 'response.output_item.added') {
      expect(open).toEqual([])
      open.push(event.output_index)
      expect(event.output_index).toBe(items.length)
    } else if (event.type === 'response.output_item.done') {
      expect(open).toEqual([event.output_index])
      open.pop()
      items.push(event.item)
    } else if ('output_index' in event) expect(open).toEqual([event.output_index])
  const end = events.at(-1) as OpenAI.Responses.ResponseCompletedEvent
  expect(end.response.output).toEqual(items)
  expect(end.response.output.map(({ type }) => type)).toEqual([
    'mcp_list_tools',
    'message',
    'mcp_call',
    'mcp_call',
    'message',
  ])
  expect(types.filter((type) => type.includes('mcp'))).toEqual([
    'response.mcp_list_tools.in_progress',
    'response.mcp_list_tools.completed',
    ...[1, 2].flatMap(() => [
      'response.mcp_call.in_progress',
      'response.mcp_call_arguments.delta',
      'response.mcp_call_arguments.done',
      'response.mcp_call.completed',
    ]),
  ])
  const ids = new Set(end.response.output.map((item) => item.id))
  expect(ids.size).toBe(5)
  for (const event of events) if ('item_id' in event) expect(ids).toContain(event.item_id)
})

test('a stream whose events state no position, as those of llama.cpp, has its tools called', async () => {
  let round = 0
  fixture.upstream.script('responses')
  fixture.upstream.decide('responses', () => {
    round += 1
    const content = round === 1 ? { text: 'Let me look.', calls: [TIDES] } : { text: 'High at noon.' }
    const given = frames(content).map((frame) =>
      frame
        .replace(/"output_index":\d+,?/, '')
        .replace(/"id":"fc_[^"]*",/, '')
        .replace(/,\}/, '}'),
    )
    return { kind: 'stream', frames: given, ending: 'no done' }
  })
  const events: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client().responses.create({ ...asked(), stream: true })) events.push(event)
  const end = events.at(-1) as OpenAI.Responses.ResponseCompletedEvent
  expect(end.response.output).toMatchObject([
    { type: 'mcp_list_tools' },
    { type: 'message', content: [{ text: 'Let me look.' }] },
    { type: 'mcp_call', status: 'completed', output: 'found tides' },
    { type: 'message', content: [{ text: 'High at noon.' }] },
  ])
  expect(events.filter(({ type }) => type.includes('function_call'))).toEqual([])
  const added = events.filter(({ type }) => type === 'response.output_item.added')
  expect(added).toMatchObject([0, 1, 2, 3].map((output_index) => ({ output_index })))
})

test('a model gets a function for each tool, under its listed name without unusual characters', async () => {
  script({ text: 'no' })
  await respond()
  const [first] = requests()
  const tools = first?.['tools'] as { name: string; strict: boolean; type: string }[]
  expect(tools.map(({ name }) => name)).toContain('web_other_one')
  expect(tools.every(({ type, strict }) => type === 'function' && !strict)).toBe(true)
  expect(first).toMatchObject({ store: false })
})

test.each([
  'https://ai.example.com/mcp',
  'litellm_proxy',
  '/mcp/searching',
  'https://ai.example.com/mcp/searching',
])('the address %s is the gateway', async (server_url) => {
  script({ text: 'no' })
  const { output } = await respond({ tools: [{ ...TOOL, server_url }] })
  const [list] = output as [OpenAI.Responses.ResponseOutputItem.McpListTools]
  const names = list.tools.map(({ name }) => name)
  expect(names).toContain('web_search')
  expect(names.includes('web_broken')).toBe(!server_url.endsWith('searching'))
})

test('allowed_tools restricts the tools, as a list and as an object', async () => {
  for (const allowed_tools of [['web_search'], { tool_names: ['web_search'] }]) {
    script({ text: 'no' })
    const { output } = await respond({ tools: [{ ...TOOL, allowed_tools }] })
    expect(output[0]).toMatchObject({ tools: [{ name: 'web_search' }] })
    expect(requests()[0]?.['tools']).toMatchObject([{ name: 'web_search' }])
  }
})

test.each([
  [{ read_only: true }, ['hung_search', 'web_search']],
  [{ read_only: false, tool_names: ['web_search', 'web_slow'] }, ['web_slow']],
  [{ read_only: true, tool_names: ['web_search', 'web_slow'] }, ['web_search']],
])('allowed_tools restricts the tools by what their annotations say: %j', async (allowed_tools, names) => {
  script({ text: 'no' })
  const { output } = await respond({ tools: [{ ...TOOL, allowed_tools }] })
  expect(output[0]).toMatchObject({ tools: names.map((name) => ({ name })) })
  expect(requests()[0]?.['tools']).toMatchObject(names.map((name) => ({ name })))
})

test('two tools with the same functions have different names for the model', async () => {
  script({ text: 'no' })
  const second = { ...TOOL, server_label: 'again', allowed_tools: ['web_search'] }
  const { output } = await respond({ tools: [{ ...TOOL, allowed_tools: ['web_search'] }, second] })
  expect(output.filter(({ type }) => type === 'mcp_list_tools')).toHaveLength(2)
  const [asking] = requests() as { tools: { name: string }[] }[]
  const names = asking?.tools.map(({ name }) => name) ?? []
  expect(names[0]).toBe('web_search')
  expect(names[1]).toMatch(/^web_search_[0-9a-f]{8}$/)
  script({ calls: [{ ...TIDES, name: String(names[1]) }] }, { text: 'done' })
  const called = await respond({ tools: [{ ...TOOL, allowed_tools: ['web_search'] }, second] })
  expect(called.output).toContainEqual(
    expect.objectContaining({
      type: 'mcp_call',
      server_label: 'again',
      name: 'web_search',
      output: 'found tides',
    }),
  )
})

test('an error of a tool is told to the model, and the response goes on', async () => {
  script({ calls: [{ id: 'call_1', name: 'web_broken', input: '{}' }] }, { text: 'Sorry.' })
  const { status, output } = await respond()
  expect(status).toBe('completed')
  expect(output[1]).toMatchObject({
    type: 'mcp_call',
    status: 'failed',
    output: null,
    error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: 'no luck' }] },
  })
  expect(fixture.upstream.received('responses').at(-1)?.text).toContain('no luck')
})

test('a tool that hangs is an error for the model after the timeout of its server', async () => {
  // A busy machine may take longer for the list of its tools; a list that came in time is kept for an hour.
  const names = async () =>
    listed((await askMcp(fixture.gateway.url, 'ann', 'tools/list')).message).map(({ name }) => name)
  await expect.poll(names).toContain('hung_slow')
  script({ calls: [{ id: 'call_1', name: 'hung_slow', input: '{}' }] }, { text: 'Sorry.' })
  const { output, output_text } = await respond()
  expect(output[1]).toMatchObject({ type: 'mcp_call', status: 'failed' })
  expect(JSON.stringify(output[1])).toContain('the server hung has not answered in time')
  expect(output_text).toBe('Sorry.')
})

test('arguments that are not an object reach no server', async () => {
  const before = calledTools('search')
  script({ calls: [{ ...TIDES, input: '[1]' }] }, { text: 'Sorry.' })
  const { output } = await respond()
  expect(output[1]).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('not a JSON object') },
  })
  expect(calledTools('search')).toBe(before)
})

test('a round that calls a function of the client ends there, after the tools of the gateway', async () => {
  script({ calls: [TIDES, { id: 'call_2', name: 'ask_user', input: '{}' }] })
  const { status, output } = await respond({
    tools: [TOOL, { type: 'function', name: 'ask_user', parameters: { type: 'object' }, strict: false }],
  })
  expect(status).toBe('completed')
  expect(output.map(({ type }) => type)).toEqual(['mcp_list_tools', 'function_call', 'mcp_call'])
  expect(output[2]).toMatchObject({ output: 'found tides' })
  expect(requests()).toHaveLength(1)
})

test('max_tool_calls ends the response, and the call beyond it is not made', async () => {
  const before = calledTools('search')
  script({ calls: [TIDES] })
  const { status, incomplete_details, output, max_tool_calls } = await respond({ max_tool_calls: 2 })
  expect([status, incomplete_details, max_tool_calls]).toEqual([
    'incomplete',
    { reason: 'max_tool_calls' },
    2,
  ])
  expect(calledTools('search') - before).toBe(2)
  expect(output.map((item) => 'status' in item && item.status)).toEqual([
    false,
    'completed',
    'completed',
    'incomplete',
  ])
})

test('a response has at most 16 rounds', async () => {
  const before = calledTools('search')
  script({ calls: [TIDES] })
  const { status, incomplete_details } = await respond()
  expect([status, incomplete_details]).toEqual(['incomplete', { reason: 'max_tool_calls' }])
  expect(requests()).toHaveLength(16)
  expect(calledTools('search') - before).toBe(15)
})

test('a forced choice of a tool holds for the first round alone', async () => {
  script(...ROUNDS)
  await respond({ tool_choice: { type: 'mcp', server_label: 'tools', name: 'web_search' } })
  expect(requests().map(({ tool_choice }) => tool_choice)).toEqual([
    { type: 'function', name: 'web_search' },
    'auto',
  ])
  const { status, error } = await refusal({
    tool_choice: { type: 'mcp', server_label: 'tools', name: 'none' },
  })
  expect([status, error['code']]).toEqual([400, 'invalid_request'])
})

test('max_output_tokens counts the output of all rounds', async () => {
  script({ calls: [TIDES], tokens: [100, 30] })
  const { status, incomplete_details } = await respond({ max_output_tokens: 70 })
  expect([status, incomplete_details]).toEqual(['incomplete', { reason: 'max_output_tokens' }])
  expect(requests().map(({ max_output_tokens }) => max_output_tokens)).toEqual([70, 40])
})

test('when the money ends between rounds, the answer so far is not lost', async () => {
  script({ text: 'Let me look.', calls: [TIDES], tokens: [100, 7] }, { text: 'High at noon.' })
  const { status, incomplete_details, output, output_text } = await respond({ max_output_tokens: 40 }, 'poor')
  expect(status).toBe('incomplete')
  expect(incomplete_details?.reason).toMatch(/insufficient_quota|token_exhausted/)
  expect(output_text).toBe('Let me look.')
  expect(output[2]).toMatchObject({ type: 'mcp_call', output: 'found tides' })
  expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([])
})

test('a call of a tool that the key cannot pay is refused to the model', async () => {
  script({ calls: [TIDES], tokens: [10, 5] }, { text: 'I cannot search.', tokens: [10, 5] })
  const { status, output, output_text } = await respond({ max_output_tokens: 40 }, 'tight')
  expect([status, output_text]).toEqual(['completed', 'I cannot search.'])
  expect(output[1]).toMatchObject({ status: 'failed', error: { type: 'http_error', code: 403 } })
})

test('rounds and calls of tools that are refused are among the refused calls', async () => {
  const refusedOf = async (key: string): Promise<object[]> => {
    const { headers } = (await respondRaw({ max_output_tokens: 40 }, key)).response
    const id = String(headers['x-request-id'])
    let found: { request_id: string }[] = []
    await eventually(async () => {
      const { data } = await manage<{ items: { request_id: string }[] }>(
        fixture.gateway.url,
        ADMIN,
        'GET /api/log/refused?p=1&page_size=100',
      )
      found = data.items.filter(({ request_id: one }) => one.startsWith(id))
      expect(found).not.toEqual([])
    })
    return found.map((one) => ({ ...one, request_id: one.request_id.slice(id.length) }))
  }
  script({ calls: [TIDES], tokens: [10, 5] }, { text: 'I cannot search.', tokens: [10, 5] })
  expect(await refusedOf('tight')).toMatchObject([
    {
      request_id: '.1.1',
      username: 'tight',
      token_name: 'token-tight',
      model_name: 'web_search',
      kind: 'tool',
      status: 403,
    },
  ])
  script({ calls: [TIDES] })
  expect(await refusedOf('little')).toMatchObject([
    {
      request_id: '.2',
      username: 'ann',
      token_name: 'token-little',
      model_name: 'responses',
      code: 'rate_limited',
    },
  ])
})

const statusIn = ({ text }: { readonly text: string }): unknown =>
  (JSON.parse(text) as OpenAI.Responses.Response).status

test.each([
  ['limit of the key', 'responses', 'brief', 2],
  ['429 of the provider', 'busy', 'ann', 1],
] as const)(
  'a response that a %s ended between its rounds is replayed for its idempotency key, and no tool is called again',
  async (why, model, key, answered) => {
    let round = 0
    fixture.upstream.decide(model, () => {
      round += 1
      if (round <= answered) return roundOfResponses({ calls: [TIDES] })
      return { kind: 'status', status: 429, body: '{}' }
    })
    const options = { key, path: '/v1/responses', headers: { 'idempotency-key': why } }
    const done = (): unknown => ({
      rounds: requests(model).length,
      tools: calledTools('search'),
      rows: databaseOf(fixture.gateway.dataDir).usage().length,
    })
    const first = await call(fixture.gateway.url, asked({ model }), options)
    const before = done()
    expect([first.status, statusIn(first)]).toEqual([200, 'incomplete'])
    const second = await call(fixture.gateway.url, asked({ model }), options)
    expect([second.status, second.text]).toEqual([200, first.text])
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(done()).toEqual(before)
  },
)

test('a response that a failure ended between its rounds is not replayed for its idempotency key', async () => {
  let round = 0
  fixture.upstream.decide('responses', () => {
    round += 1
    return round === 2
      ? { kind: 'status', status: 500, body: '{}' }
      : roundOfResponses(round === 1 ? { calls: [TIDES] } : { text: 'done' })
  })
  const options = { key: 'ann', path: '/v1/responses', headers: { 'idempotency-key': 'failed between' } }
  const first = await call(fixture.gateway.url, asked(), options)
  const second = await call(fixture.gateway.url, asked(), options)
  expect([statusIn(first), statusIn(second)]).toEqual(['failed', 'completed'])
})

test('a limit that is reached between rounds ends the response as incomplete', async () => {
  script({ calls: [TIDES] })
  const { status, incomplete_details } = await respond({}, 'few')
  expect([status, incomplete_details]).toEqual(['incomplete', { reason: 'rate_limited' }])
})

test('a key with one parallel call is served, and its tools are called one after another', async () => {
  script({ calls: [TIDES, { ...TIDES, id: 'call_2' }] }, { text: 'done' })
  const { status, output } = await respond({}, 'one')
  expect(status).toBe('completed')
  expect(output.filter((item) => item.type === 'mcp_call' && item.output === 'found tides')).toHaveLength(2)
})

test('a refusal of the first round has its status', async () => {
  fixture.upstream.script('responses', {
    kind: 'status',
    status: 400,
    body: '{"error":{"message":"bad schema"}}',
  })
  const { status, error } = await refusal({})
  expect([status, error['message']]).toEqual([400, expect.stringContaining('bad schema')])
})

test('a later round that fails ends the response as failed, with what there is', async () => {
  let round = 0
  fixture.upstream.decide('responses', () => {
    round += 1
    if (round === 1) return roundOfResponses({ calls: [TIDES] })
    return { kind: 'status', status: 500, body: '{}' }
  })
  const { body } = await respondRaw()
  expect(body).toMatchObject({ status: 'failed', error: { code: expect.any(String) } })
  expect(body.output[1]).toMatchObject({ type: 'mcp_call', output: 'found tides' })
})

test.each([
  ['require_approval', { require_approval: 'always' }],
  ['server_url', { server_url: '/mcp/of-others' }],
  ['server_url', { server_url: '/mcp/unknown' }],
  ['server_label', { server_label: '' }],
  ['allowed_tools', { allowed_tools: 'web_search' }],
  ['allowed_tools', { allowed_tools: {} }],
  ['allowed_tools', { allowed_tools: { names: ['web_search'] } }],
  ['allowed_tools', { allowed_tools: { tool_names: ['web_search'], always: true } }],
  ['allowed_tools', { allowed_tools: { read_only: 'yes' } }],
])('a tool with another %s is a 400 that names it', async (member, change) => {
  script({ text: 'no' })
  const { status, error } = await refusal({ tools: [{ ...TOOL, ...change }] })
  expect([status, error['message']]).toEqual([400, expect.stringContaining(`tools[0].${member}`)])
  expect(requests()).toEqual([])
})

test('a response in the background is refused in words that say why', async () => {
  const { status, error } = await refusal({ background: true })
  expect([status, error['message']]).toEqual([400, expect.stringContaining(`'background'`)])
})

test('credentials in the tool reach neither the server nor the answer', async () => {
  script(...ROUNDS)
  const secret = 'the-clients-secret'
  const tool = { ...TOOL, authorization: secret, headers: { 'x-secret': secret } }
  const response = await respond({ tools: [tool] })
  expect(response.output[1]).toMatchObject({ output: 'found tides' })
  expect(response.tools).toEqual([TOOL])
  expect(JSON.stringify(response)).not.toContain(secret)
  expect(JSON.stringify(web.seen)).not.toContain(secret)
  expect(
    fixture.upstream
      .received('responses')
      .map(({ text }) => text)
      .join(''),
  ).not.toContain(secret)
})

test('a tool with another address passes to channels that have it, and is left out elsewhere', async () => {
  const foreign = { ...TOOL, server_url: 'https://mcp.example.com/mcp' }
  script({ text: 'no' })
  await respond({ tools: [foreign] })
  expect(requests()[0]?.['tools']).toEqual([foreign])
  scriptRounds(fixture.upstream, 'chat', { text: 'no' })
  const { response } = await respondRaw({ model: 'chat', tools: [foreign] })
  expect(response.headers['x-gateway-dropped']).toContain('tools.mcp')
  expect(fixture.upstream.received('chat').at(-1)?.text).not.toContain('mcp.example.com')
})

describe.each(['responses', 'chat'] as const)('a stored response over a %s channel', (model) => {
  test('a later request continues it, with the calls of tools as calls of functions', async () => {
    scriptRounds(fixture.upstream, model, ...ROUNDS)
    const first = await respond({ model })
    expect(first).toMatchObject({ store: true })
    expect(await client().responses.retrieve(first.id)).toMatchObject({ id: first.id, output: first.output })
    await expect(client('bob').responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
    scriptRounds(fixture.upstream, model, { text: 'You asked about tides.' })
    const second = await client().responses.create({
      model,
      input: 'What did I ask?',
      previous_response_id: first.id,
    })
    expect(second.output_text).toBe('You asked about tides.')
    const { text } = fixture.upstream.only(model)
    for (const part of ['When is the tide high?', 'found tides', 'High at noon.', 'What did I ask?'])
      expect(text).toContain(part)
    expect(text).not.toContain('mcp_call')
    // Its provider does not know the response.
    expect(text).not.toContain(first.id)
    scriptRounds(fixture.upstream, model, ...ROUNDS)
    const third = await respond({ model, input: 'Again.', previous_response_id: second.id })
    expect(third.output_text).toBe('High at noon.')
    expect(fixture.upstream.received(model)).toHaveLength(2)
  })

  test('an item of it can be named in a later request', async () => {
    scriptRounds(fixture.upstream, model, ...ROUNDS)
    const first = await respond({ model })
    scriptRounds(fixture.upstream, model, { text: 'yes' })
    const input = [
      { type: 'item_reference' as const, id: String(first.output.at(-1)?.id) },
      { role: 'user' as const, content: 'Is it so?' },
    ]
    await client().responses.create({ model, input, store: false })
    expect(fixture.upstream.only(model).text).toContain('High at noon.')
  })

  test('store: false keeps nothing', async () => {
    scriptRounds(fixture.upstream, model, ...ROUNDS)
    const { id, ...rest } = await respond({ model, store: false })
    expect(rest).toMatchObject({ store: false })
    await expect(client().responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })
})

test('items of an earlier answer that are sent back are history, and call nothing', async () => {
  for (const model of ['responses', 'chat', 'messages', 'gemini'] as const) {
    scriptRounds(fixture.upstream, model, ...ROUNDS)
    const { output } = await respond({ model, store: false })
    const before = web.received('tools/call').length
    scriptRounds(fixture.upstream, model, { text: 'again' })
    const input = [
      { role: 'user' as const, content: 'When is the tide high?' },
      ...(output as OpenAI.Responses.ResponseInputItem[]),
      { role: 'user' as const, content: 'And tomorrow?' },
    ]
    for (const tools of [[TOOL], []]) await respond({ model, store: false, input, tools })
    expect(web.received('tools/call').length).toBe(before)
    for (const { text } of fixture.upstream.received(model)) expect(text).toContain('found tides')
  }
})

test('a client that leaves while a tool works cancels the call, and nothing else is started', async () => {
  slow = Promise.withResolvers<string>()
  isCancelled = false
  // The server `hung` may have been called before.
  const before = calledTools('slow')
  script({ calls: [{ id: 'call_1', name: 'web_slow', input: '{}' }] }, { text: 'never' })
  const live = await fixture.live('ann', asked({ stream: true } as object), { path: '/v1/responses' })
  await live.until('response.mcp_call.in_progress')
  await eventually(() => expect(calledTools('slow')).toBeGreaterThan(before))
  const id = String(live.headers['x-request-id'])
  // A client that closes earlier may only have ended sending.
  await sleep(CERTAINLY_GONE_MS)
  live.abort()
  await expect.poll(() => isCancelled, { message: 'the server sees that its call is cancelled' }).toBe(true)
  await eventually(() =>
    expect(
      rowsOf(id)
        .map((row) => row.id)
        .toSorted(),
    ).toEqual([id, `${id}.1.1`]),
  )
  expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([])
  expect(requests()).toHaveLength(1)
  expect(rowsOf(id).find((row) => row.id !== id)?.quota).toBe(500)
})

test('an answer is repeated for its idempotency key, and no tool is called again', async () => {
  script(...ROUNDS)
  const headers = { 'idempotency-key': 'once' }
  const first = await call(fixture.gateway.url, asked(), { key: 'ann', path: '/v1/responses', headers })
  const before = web.received('tools/call').length
  const second = await call(fixture.gateway.url, asked(), { key: 'ann', path: '/v1/responses', headers })
  expect(second.headers['idempotency-replayed']).toBe('true')
  expect(second.text).toBe(first.text)
  expect(web.received('tools/call').length).toBe(before)
  expect(requests()).toHaveLength(2)
})

test('a turn over a WebSocket calls tools, and the next one goes on from it', async () => {
  for (const store of [true, false]) {
    script(...ROUNDS)
    const socket = await openSocket(fixture.gateway.url, 'ann')
    const events = await socket.turn({ ...asked(), store })
    const end = events.at(-1) as unknown as OpenAI.Responses.ResponseCompletedEvent
    expect(end.response.output.map(({ type }) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
    script({ text: 'You asked about tides.' })
    await socket.turn({
      model: 'responses',
      input: 'What did I ask?',
      previous_response_id: end.response.id,
      store,
    })
    expect(fixture.upstream.only('responses').text).toContain('found tides')
    socket.socket.terminate()
  }
})

test('a request with generate: false prepares here, and calls nothing', async () => {
  script(...ROUNDS)
  const socket = await openSocket(fixture.gateway.url, 'ann')
  const before = web.received('tools/call').length
  const events = await socket.turn({ ...asked(), generate: false })
  expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.completed'])
  expect(requests()).toEqual([])
  expect(web.received('tools/call').length).toBe(before)
  socket.socket.terminate()
})

test('a toolset that is removed while a response is made gives its tools no more', async () => {
  const added = await manage(fixture.gateway.url, ADMIN, 'POST /api/mcp/toolsets', {
    name: 'brief',
    tools: ['web.search'],
  })
  expect(added.success).toBe(true)
  let round = 0
  fixture.upstream.decide('responses', () => {
    round += 1
    if (round === 1) return roundOfResponses({ calls: [TIDES] })
    if (round > 2) return roundOfResponses({ text: 'done' })
    const removed = manage(fixture.gateway.url, ADMIN, 'DELETE /api/mcp/toolsets/brief')
    return { ...roundOfResponses({ calls: [TIDES] }), after: removed }
  })
  const { body } = await respondRaw({ tools: [{ ...TOOL, server_url: '/mcp/brief' }] })
  expect(body.output.filter(({ type }) => type === 'mcp_call')).toMatchObject([
    { output: 'found tides' },
    { status: 'failed', error: { type: 'mcp_protocol_error', message: 'Unknown tool: web_search' } },
  ])
})

test.each([
  ['alone', BOB.accessToken],
  ['after Bearer', `Bearer ${BOB.accessToken}`],
])('the playground has the tools of its key, with the access token %s', async (_, authorization) => {
  const keys = await manage<{ items: { id: number }[] }>(fixture.gateway.url, BOB, 'GET /api/token/')
  script(...ROUNDS)
  const headers = {
    authorization,
    'gateway-user': String(BOB.id),
    'gateway-key': String(keys.data.items[0]?.id),
  }
  const path = '/api/playground/responses'
  const { text } = await call(fixture.gateway.url, asked(), { headers, path })
  const body = JSON.parse(text) as OpenAI.Responses.Response
  expect(body).toMatchObject({ status: 'completed' })
  expect(body.output[1]).toMatchObject({ type: 'mcp_call', status: 'completed', output: 'found tides' })
})

test.each(['with the key', 'from the playground'])(
  'a key that is deleted while a response is made %s ends it',
  async (by) => {
    const made = await manage<{ id: number; key?: string }>(fixture.gateway.url, ADMIN, 'POST /api/token/', {
      name: 'brief',
      expired_time: -1,
      remain_quota: 0,
      unlimited_quota: true,
      model_limits_enabled: false,
      model_limits: '',
    })
    expect(made.success).toBe(true)
    const list = await manage<{ items: { id: number; name: string }[] }>(
      fixture.gateway.url,
      ADMIN,
      'GET /api/token/?p=1&page_size=10',
    )
    const { id } = list.data.items.find(({ name }) => name === 'brief') ?? { id: 0 }
    const revealed = await manage<{ key: string }>(fixture.gateway.url, ADMIN, `POST /api/token/${id}/key`)
    const key = revealed.data.key.replace(/^sk-/, '')
    let round = 0
    fixture.upstream.script('responses')
    fixture.upstream.decide('responses', () => {
      round += 1
      const removed = round === 1 ? manage(fixture.gateway.url, ADMIN, `DELETE /api/token/${id}`) : undefined
      return { ...roundOfResponses({ calls: [TIDES] }), ...(removed && { after: removed }) }
    })
    const own = {
      authorization: ADMIN.accessToken,
      'new-api-user': String(ADMIN.id),
      'gateway-key': String(id),
    }
    const { text } = await call(
      fixture.gateway.url,
      asked({}),
      by === 'with the key'
        ? { key, path: '/v1/responses' }
        : { headers: own, path: '/api/playground/responses' },
    )
    const body = JSON.parse(text) as OpenAI.Responses.Response
    expect(body).toMatchObject({ status: 'failed' })
    expect(body.output[1]).toMatchObject({ type: 'mcp_call', status: 'failed' })
    expect(requests()).toHaveLength(1)
  },
)
