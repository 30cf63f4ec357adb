import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { readGolden } from '../golden/golden-file.ts'

const GOLDEN = join(import.meta.dirname, '../golden')
const WIRES = {
  messages: {
    path: '/v1/messages',
    whole: 'replies/messages/web-searches.txt',
    stream: 'streams/messages/web-searches.txt',
    question: { max_tokens: 100, messages: [{ role: 'user', content: 'News?' }] },
  },
  responses: {
    path: '/v1/responses',
    whole: 'replies/responses/web-searches.txt',
    stream: 'streams/responses/web-searches.txt',
    question: { input: [{ role: 'user', content: 'News?' }] },
  },
} as const
type Wire = keyof typeof WIRES

interface Part {
  readonly type: string
  readonly status?: string
  readonly encrypted_content?: string
}

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['messages', 'responses', 'gemini']),
    channels: (['messages', 'responses', 'gemini'] as const).map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const golden = (file: string): string => readGolden(join(GOLDEN, file)).source

/** A reply with searches, as the upstream of this protocol sends it. */
function searching(wire: Wire, stream: boolean): Behaviour {
  return stream
    ? { kind: 'stream', ending: 'no done', frames: [golden(WIRES[wire].stream)] }
    : { kind: 'whole', body: golden(WIRES[wire].whole) }
}

function ask(client: Wire, model: Wire, fields: object): Promise<FullResponse> {
  const { path, question } = WIRES[client]
  return fixture.chat('ann', { model, ...question, ...fields }, { path })
}

/** The parts of the reply as the client has them in the end. */
function partsOf({ text }: FullResponse, client: Wire, stream: boolean): readonly Part[] {
  if (!stream) return JSON.parse(text)[client === 'messages' ? 'content' : 'output']
  const events = text
    .split('\n')
    .flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
  if (client === 'responses') return events.at(-1).response.output
  return events.flatMap(({ content_block: block }) => (block ? [block] : []))
}

const unitsOf = (answer: FullResponse) => database.usageOf(String(answer.headers['x-request-id']))?.quota
/** Quota units of the container in which the provider of messages ran code: five cents. */
const CONTAINER = 25_000
/** Prompt tokens at one unit, output tokens at four, searches at a cent. */
const price = (input: number, output: number, searches: number) => input + 4 * output + 5000 * searches

describe.each([false, true])('what a provider searched for, stream: %s', (stream) => {
  test("a provider's web search is shown to responses clients, charged, and sent back unchanged to its provider", async () => {
    fixture.upstream.script('messages', searching('messages', stream))
    const told = await ask('responses', 'messages', { stream })
    const items = partsOf(told, 'responses', stream)
    expect(items.filter(({ type }) => type === 'web_search_call').map(({ status }) => status)).toEqual([
      'completed',
      'failed',
      'completed',
    ])
    expect(unitsOf(told)).toBe(price(10, 5, 2) + CONTAINER)

    fixture.upstream.script('messages', { kind: 'whole', body: golden(WIRES.messages.whole) })
    const history = [...WIRES.responses.question.input, ...items, { role: 'user', content: 'Sure?' }]
    const next = await ask('responses', 'messages', { input: history })
    expect(next.status).toBe(200)
    const sent = JSON.parse(fixture.upstream.only('messages').text).messages[1].content as readonly Part[]
    const ran = ({ type }: Part): boolean => type !== 'text'
    expect(sent.filter(ran)).toEqual(JSON.parse(golden(WIRES.messages.whole)).content.filter(ran))
    // The citations of a text are not shown, and not returned.
    expect(next.headers['x-gateway-dropped']).toBe('input.annotations')
  })

  test("a provider's web search is shown to messages clients, charged, and not sent to a provider that would refuse it", async () => {
    fixture.upstream.script('responses', searching('responses', stream))
    const told = await ask('messages', 'responses', {
      stream,
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    })
    const asked = JSON.parse(fixture.upstream.only('responses').text)
    expect(asked.include).toEqual(['web_search_call.action.sources'])
    const blocks = partsOf(told, 'messages', stream)
    expect(blocks.map(({ type }) => type)).toEqual([
      ...Array.from({ length: 3 }, () => ['server_tool_use', 'web_search_tool_result']).flat(),
      'text',
    ])
    expect(unitsOf(told)).toBe(price(20, 10, 3))

    const text = { type: 'text', text: 'Done' }
    const history = [
      ...WIRES.messages.question.messages,
      { role: 'assistant', content: [...blocks.filter(({ type }) => type !== 'text'), text] },
      { role: 'user', content: 'Sure?' },
    ]
    fixture.upstream.script('messages', searching('messages', false))
    await ask('messages', 'messages', { messages: history })
    expect(JSON.parse(fixture.upstream.only('messages').text).messages[1].content).toEqual([text])

    fixture.upstream.script('responses', searching('responses', false))
    await ask('messages', 'responses', { messages: history })
    const items = JSON.parse(fixture.upstream.only('responses').text).input as readonly Part[]
    expect(items.filter(({ type }) => type === 'web_search_call').map(({ status }) => status)).toEqual([
      'completed',
      'completed',
      'failed',
    ])
  })
})

test('citations that a conversion wrote are left out of requests to messages upstreams', async () => {
  const annotated = JSON.parse(golden('replies/responses/annotations.txt'))
  fixture.upstream.script('responses', { kind: 'whole', body: JSON.stringify(annotated) })
  const content = JSON.parse((await ask('messages', 'responses', {})).text).content
  expect(JSON.stringify(content)).toContain('web_search_result_location')
  const messages = [
    ...WIRES.messages.question.messages,
    { role: 'assistant', content },
    { role: 'user', content: 'Sure?' },
  ]
  fixture.upstream.script('messages', searching('messages', false))
  expect((await ask('messages', 'messages', { messages })).status).toBe(200)
  const sent = fixture.upstream.only('messages').text
  expect(sent).not.toContain('web_search_result_location')
  expect(JSON.parse(sent).messages[1].content.map(({ text }: { text: string }) => text)).toEqual(
    content.map(({ text }: { text: string }) => text),
  )
})

const CLAUDE_SEARCH = { type: 'web_search_20250305', name: 'web_search', max_uses: 5 }
const OPENAI_SEARCH = { type: 'web_search', search_context_size: 'medium' }
const QUESTION = [{ role: 'user', content: 'News?' }]
const allowed = { allowed_domains: ['a.example'] }
const blocked = { blocked_domains: ['b.example'] }

/** Requests with a web search, by their path. */
const searchBy = {
  responses: (tool: object) => ['/v1/responses', { input: 'News?', tools: [tool] }] as const,
  messages: (tool: object) =>
    ['/v1/messages', { ...WIRES.messages.question, tools: [{ ...CLAUDE_SEARCH, ...tool }] }] as const,
  chat: (options: object) =>
    ['/v1/chat/completions', { messages: QUESTION, web_search_options: options }] as const,
  gemini: (googleSearch: object) =>
    [
      '/v1beta/models/messages:generateContent',
      { contents: [{ role: 'user', parts: [{ text: 'News?' }] }], tools: [{ googleSearch }] },
    ] as const,
}

function answering(upstream: Wire | 'gemini'): void {
  fixture.upstream.forget(upstream)
  const gemini = '{"candidates":[{"content":{"parts":[{"text":"No."}]},"finishReason":"STOP"}]}'
  fixture.upstream.script(
    upstream,
    upstream === 'gemini' ? { kind: 'whole', body: gemini } : searching(upstream, false),
  )
}

test.each([
  [
    'responses',
    { ...OPENAI_SEARCH, filters: allowed },
    'messages',
    { ...CLAUDE_SEARCH, ...allowed },
    undefined,
  ],
  [
    'responses',
    { ...OPENAI_SEARCH, filters: blocked },
    'messages',
    { ...CLAUDE_SEARCH, ...blocked },
    undefined,
  ],
  // Anthropic refuses both lists in one request.
  [
    'responses',
    { ...OPENAI_SEARCH, filters: { ...allowed, ...blocked } },
    'messages',
    { ...CLAUDE_SEARCH, ...allowed },
    'web_search',
  ],
  [
    'responses',
    { ...OPENAI_SEARCH, filters: { ...allowed, x: 1 } },
    'messages',
    { ...CLAUDE_SEARCH, ...allowed },
    'web_search',
  ],
  ['responses', { ...OPENAI_SEARCH, filters: { allowed_domains: [] } }, 'messages', CLAUDE_SEARCH, undefined],
  [
    'responses',
    { ...OPENAI_SEARCH, search_content_types: ['text'] },
    'messages',
    CLAUDE_SEARCH,
    'web_search',
  ],
  ['responses', { ...OPENAI_SEARCH, external_web_access: true }, 'messages', CLAUDE_SEARCH, undefined],
  ['responses', { ...OPENAI_SEARCH, external_web_access: false }, 'messages', CLAUDE_SEARCH, 'web_search'],
  ['responses', { ...OPENAI_SEARCH, filters: allowed }, 'gemini', { googleSearch: {} }, 'web_search'],
  ['messages', allowed, 'responses', { ...OPENAI_SEARCH, filters: allowed }, undefined],
  ['messages', blocked, 'responses', { ...OPENAI_SEARCH, filters: blocked }, undefined],
  ['messages', { allowed_callers: ['direct'] }, 'responses', OPENAI_SEARCH, 'web_search'],
  ['gemini', { excludeDomains: ['b.example'] }, 'messages', { ...CLAUDE_SEARCH, ...blocked }, undefined],
  ['gemini', { exclude_domains: ['b.example'] }, 'messages', { ...CLAUDE_SEARCH, ...blocked }, undefined],
  ['gemini', { timeRangeFilter: {} }, 'messages', CLAUDE_SEARCH, 'web_search'],
  ['chat', { filters: allowed }, 'messages', CLAUDE_SEARCH, 'web_search'],
] as const)(
  'a web search keeps the domains of its client, and what the other side lacks is named: %s, %j for %s is %j, dropped: %s',
  async (client, tool, upstream, sent, dropped) => {
    answering(upstream)
    const [path, body] = searchBy[client](tool)
    const answer = await fixture.chat('ann', { model: upstream, ...body }, { path })
    expect([answer.status, answer.headers['x-gateway-dropped']]).toEqual([200, dropped])
    const { tools } = JSON.parse(fixture.upstream.only(upstream).text)
    expect(tools).toEqual([sent])
  },
)

const FUNCTION = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }
const CLAUDE_CHOICE = { type: 'tool', name: 'web_search' }
const allows = (mode: string) => ({ type: 'allowed_tools', mode, tools: [{ type: 'web_search' }] })

test.each([
  ['responses', { type: 'web_search' }, 'messages', 200, CLAUDE_CHOICE, undefined],
  ['responses', { type: 'web_search_preview' }, 'messages', 200, CLAUDE_CHOICE, undefined],
  ['responses', allows('required'), 'messages', 200, CLAUDE_CHOICE, undefined],
  ['responses', allows('auto'), 'messages', 200, undefined, undefined],
  ['responses', { type: 'web_search' }, 'gemini', 400, undefined, undefined],
  ['messages', CLAUDE_CHOICE, 'responses', 200, { type: 'web_search' }, undefined],
  ['messages', { type: 'any' }, 'responses', 200, 'required', undefined],
  ['messages', CLAUDE_CHOICE, 'gemini', 200, undefined, 'tool_choice'],
  ['messages', { type: 'any' }, 'gemini', 200, undefined, 'tool_choice'],
] as const)(
  'a web search that a client forces is forced where its provider can be: %s, %j for %s is a %d with %j, dropped: %s',
  async (client, tool_choice, upstream, status, sent, dropped) => {
    answering(upstream)
    const [path, body] = searchBy[client]({ ...(client === 'responses' && OPENAI_SEARCH) })
    const answer = await fixture.chat('ann', { model: upstream, ...body, tool_choice }, { path })
    expect([answer.status, answer.headers['x-gateway-dropped']]).toEqual([status, dropped])
    if (status === 400) return expect(fixture.upstream.received(upstream)).toEqual([])
    expect(JSON.parse(fixture.upstream.only(upstream).text).tool_choice).toEqual(sent)
  },
)

test('a forced web search of a responses client is forced beside functions, without parallel calls if it wants none, and without thinking, which Anthropic refuses then', async () => {
  answering('messages')
  const tools = [FUNCTION, OPENAI_SEARCH]
  const asked = {
    tools,
    tool_choice: { type: 'web_search' },
    parallel_tool_calls: false,
    reasoning: { effort: 'low' },
  }
  const answer = await ask('responses', 'messages', asked)
  expect(answer.headers['x-gateway-dropped']).toBe('thinking')
  const sent = JSON.parse(fixture.upstream.only('messages').text)
  expect(sent.tools).toHaveLength(2)
  expect(sent.tool_choice).toEqual({ ...CLAUDE_CHOICE, disable_parallel_tool_use: true })
  expect(sent.thinking).toBeUndefined()
})
