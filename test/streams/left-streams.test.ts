import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { contentFrame, roleFrame } from '../fixtures/behaviour.ts'
import { CERTAINLY_GONE_MS } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames } from '../fixtures/gemini-behaviour.ts'
import { messageFrames } from '../fixtures/messages-behaviour.ts'
import { picture } from '../fixtures/picture.ts'
import { frames as responseFrames } from '../fixtures/responses-behaviour.ts'

/** 2,000 tokens in any tokenizer, and 12,000 characters. */
const WORDS = 'apple '.repeat(2_000)
const IN_BASE64 = Buffer.from(WORDS).toString('base64')
const SCHEMA = { type: 'object', properties: { city: { type: 'string', description: WORDS } } }

/** The same for tokens; 1,000 units for a second, 20,000 for an image of one size, 50,000 for others. */
const MEDIA_PRICE = { ...PLAIN_PRICE, second: 0.002, image: { '1024x1024': 0.04, default: 0.1 } }

type Dialect = 'chat' | 'messages' | 'responses' | 'gemini'
const DIALECTS: readonly Dialect[] = ['chat', 'messages', 'responses', 'gemini']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: {
      ...Object.fromEntries(DIALECTS.map((name) => [name, { price: PLAIN_PRICE }])),
      ...Object.fromEntries(DIALECTS.map((name) => [`${name}-media`, { price: MEDIA_PRICE }])),
    },
    channels: DIALECTS.map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name, models: [name, `${name}-media`] }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
  }))
})
afterAll(() => fixture?.close())

/** Frames that each upstream sends before it is silent: a few words, and no usage. */
const BEGINNINGS: Readonly<Record<Dialect, readonly string[]>> = {
  chat: [roleFrame(), contentFrame('Once upon')],
  messages: messageFrames([{ text: 'Once upon' }], { counts: { input_tokens: 0, output_tokens: 0 } }).slice(
    0,
    5,
  ),
  responses: responseFrames({ text: 'Once upon' }).slice(0, 6),
  gemini: geminiFrames({ text: 'Once upon', usage: '{}' }).slice(0, 2),
}

const REQUESTS: Readonly<Record<Dialect, (fields: object) => { path: string; body: object }>> = {
  chat: (fields) => ({
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'hi' }], stream: true, ...fields },
  }),
  messages: (fields) => ({
    path: '/v1/messages',
    body: { messages: [{ role: 'user', content: 'hi' }], max_tokens: 50, stream: true, ...fields },
  }),
  responses: (fields) => ({ path: '/v1/responses', body: { input: 'hi', stream: true, ...fields } }),
  gemini: (fields) => ({
    path: '',
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], ...fields },
  }),
}

/** The usage row of a call whose client left in the middle of its stream. */
async function leftRow(
  client: Dialect,
  fields: object,
  upstream: Dialect = client,
  { more = [], model = upstream }: { readonly more?: readonly string[]; readonly model?: string } = {},
): Promise<UsageRow> {
  const database = databaseOf(fixture.gateway.dataDir)
  const [first = '', ...words] = BEGINNINGS[upstream]
  // The words come last, so that all has arrived with them; after half a frame, nothing can come.
  const isWhole = more.every((frame) => /\r?\n\r?\n$/.test(frame))
  const frames = isWhole ? [first, ...more, ...words] : [first, ...words, ...more]
  fixture.upstream.script(upstream, { kind: 'stream', frames, ending: 'stall' })
  const { path, body } = REQUESTS[client](fields)
  const named = client === 'gemini' ? body : { model, ...body }
  const live = await fixture.live('ann', named, {
    path: path || `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
  })
  await live.until('upon')
  if (!isWhole) await live.until(String(more.at(-1)))
  const id = String(live.headers['x-request-id'])
  // Directly after a request, a client that closes its sending side may still be reading.
  await sleep(CERTAINLY_GONE_MS)
  live.abort()
  await vi.waitFor(() => expect(database.usageOf(id)?.reason).toBe('client_gone'), 120_000)
  return database.usageOf(id) as UsageRow
}

const said = (...messages: object[]) => ({ messages: [{ role: 'user', content: 'hi' }, ...messages] })
const told = (...input: object[]) => ({ input: [{ role: 'user', content: 'hi' }, ...input] })
const parts = (...list: object[]) => ({ contents: [{ role: 'user', parts: list }] })
const call = (fields: object) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}', ...fields } }],
})

describe('the prompt of a stream that its client left', () => {
  test.concurrent.each<[string, Dialect, object]>([
    ['chat: a system message', 'chat', said({ role: 'system', content: WORDS })],
    ['chat: the result of a tool', 'chat', said({ role: 'tool', tool_call_id: 'c', content: WORDS })],
    [
      'chat: the schema of a tool',
      'chat',
      { tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }] },
    ],
    [
      'chat: the description of a tool',
      'chat',
      { tools: [{ type: 'function', function: { name: 'f', description: WORDS } }] },
    ],
    [
      'chat: a name in a schema',
      'chat',
      { tools: [{ type: 'function', function: { name: 'f', parameters: { properties: { [WORDS]: {} } } } }] },
    ],
    ['chat: the name of a message', 'chat', said({ role: 'user', name: WORDS, content: 'x' })],
    ['chat: the name of a call', 'chat', said(call({ name: WORDS }))],
    ['chat: arguments of the history', 'chat', said(call({ arguments: JSON.stringify({ a: WORDS }) }))],
    ['chat: a prediction', 'chat', { prediction: { type: 'content', content: WORDS } }],
    [
      'chat: a file of text',
      'chat',
      said({
        role: 'user',
        content: [
          { type: 'file', file: { filename: 'a.txt', file_data: `data:text/plain;base64,${IN_BASE64}` } },
        ],
      }),
    ],
    [
      'chat: reasoning of the history',
      'chat',
      said({ role: 'assistant', content: 'x', reasoning_content: WORDS }),
    ],
    [
      'chat: the format of the answer',
      'chat',
      { response_format: { type: 'json_schema', json_schema: { name: 'f', schema: SCHEMA } } },
    ],
    ['chat: documents', 'chat', { documents: [{ title: 't', text: WORDS }] }],
    ['chat: an unknown member', 'chat', { x_context: { deep: [{ note: WORDS }] } }],
    ['chat: an unknown member of a message', 'chat', said({ role: 'user', content: 'x', x_context: WORDS })],
    ['chat: an unknown part', 'chat', said({ role: 'user', content: [{ type: 'text_v2', words: WORDS }] })],
    [
      'chat: beside an image',
      'chat',
      said({
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png', note: WORDS } }],
      }),
    ],
    ['messages: the system prompt', 'messages', { system: WORDS }],
    [
      'messages: the result of a tool',
      'messages',
      said(
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: WORDS }] }],
        },
      ),
    ],
    [
      'messages: the input of a call',
      'messages',
      said({ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: { [WORDS]: 1 } }] }),
    ],
    [
      'messages: thoughts of the history',
      'messages',
      said({ role: 'assistant', content: [{ type: 'thinking', thinking: WORDS, signature: 's' }] }),
    ],
    [
      'messages: a document',
      'messages',
      said({
        role: 'user',
        content: [
          { type: 'document', source: { type: 'base64', media_type: 'text/plain', data: IN_BASE64 } },
        ],
      }),
    ],
    [
      'messages: the title of a document',
      'messages',
      said({
        role: 'user',
        content: [
          { type: 'document', title: WORDS, source: { type: 'text', media_type: 'text/plain', data: 'x' } },
        ],
      }),
    ],
    [
      'messages: a search result',
      'messages',
      said({
        role: 'user',
        content: [
          { type: 'search_result', source: 'x', title: 'x', content: [{ type: 'text', text: WORDS }] },
        ],
      }),
    ],
    ['messages: the schema of a tool', 'messages', { tools: [{ name: 'f', input_schema: SCHEMA }] }],
    ['messages: an unknown member', 'messages', { x_context: [{ type: 'note', note: WORDS }] }],
    ['responses: the instructions', 'responses', { instructions: WORDS }],
    [
      'responses: the output of a call',
      'responses',
      told(
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: WORDS },
      ),
    ],
    [
      'responses: arguments of the history',
      'responses',
      told({ type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify({ a: WORDS }) }),
    ],
    [
      'responses: a summary of the history',
      'responses',
      told({ type: 'reasoning', summary: [{ type: 'summary_text', text: WORDS }] }),
    ],
    [
      'responses: a file of text',
      'responses',
      told({
        role: 'user',
        content: [{ type: 'input_file', filename: 'a.csv', file_data: `data:text/csv;base64,${IN_BASE64}` }],
      }),
    ],
    [
      'responses: the schema of a tool',
      'responses',
      { tools: [{ type: 'function', name: 'f', parameters: SCHEMA }] },
    ],
    [
      'responses: the format of the answer',
      'responses',
      { text: { format: { type: 'json_schema', name: 'f', schema: SCHEMA } } },
    ],
    ['responses: an unknown item', 'responses', told({ type: 'x_note', note: { deep: WORDS } })],
    ['gemini: the system instruction', 'gemini', { system_instruction: { parts: [{ text: WORDS }] } }],
    [
      'gemini: the response of a function',
      'gemini',
      parts({ functionResponse: { name: 'f', response: { output: WORDS } } }),
    ],
    [
      'gemini: arguments of the history',
      'gemini',
      parts({ functionCall: { name: 'f', args: { a: [WORDS] } } }),
    ],
    [
      'gemini: code and its result',
      'gemini',
      parts({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: WORDS } }),
    ],
    ['gemini: a file of text', 'gemini', parts({ inlineData: { mimeType: 'text/plain', data: IN_BASE64 } })],
    [
      'gemini: the schema of a function',
      'gemini',
      { tools: [{ functionDeclarations: [{ name: 'f', parameters: SCHEMA }] }] },
    ],
    ['gemini: the schema of the answer', 'gemini', { generationConfig: { responseSchema: SCHEMA } }],
    ['gemini: an unknown member', 'gemini', { x_context: [WORDS] }],
  ])(
    'a stream that its client left is charged for the whole prompt, wherever the prompt is: %s',
    async (_, dialect, fields) => {
      const { input_tokens, output_tokens, quota } = await leftRow(dialect, fields)
      expect(input_tokens).toBeGreaterThanOrEqual(2_000)
      // The image beside it counts as in a hold.
      expect(input_tokens).toBeLessThan(13_500)
      expect(output_tokens).toBeGreaterThan(0)
      expect(quota).toBe(input_tokens + 4 * output_tokens)
    },
  )

  test.each<[Dialect, Dialect, object]>([
    [
      'chat',
      'messages',
      said(call({ arguments: JSON.stringify({ a: WORDS }) }), {
        role: 'tool',
        tool_call_id: 'c',
        content: 'x',
      }),
    ],
    ['messages', 'gemini', { tools: [{ name: 'f', input_schema: SCHEMA }] }],
    ['gemini', 'responses', parts({ inlineData: { mimeType: 'text/plain', data: IN_BASE64 } })],
    ['responses', 'chat', { instructions: WORDS }],
  ])(
    'a stream that its client left is charged for the request as sent, not as converted: %s to %s',
    async (client, model, fields) => {
      const { input_tokens } = await leftRow(client, fields, model)
      expect(input_tokens).toBeGreaterThanOrEqual(2_000)
      expect(input_tokens).toBeLessThan(2_600)
    },
  )

  test('the counted prompt of a stream that its client left does not include ids, metadata and stop sequences', async () => {
    const long = WORDS.slice(0, 500)
    const listed = { user: long, metadata: { a: long }, stop: [long], prompt_cache_key: long }
    const { input_tokens } = await leftRow('chat', {
      ...listed,
      ...said({ role: 'tool', tool_call_id: long, content: 'x' }),
    })
    expect(input_tokens).toBeLessThan(30)
  })

  test('the counted prompt of a stream that its client left includes long text that precedes or follows 256,000 spaces', async () => {
    const spaces = ' '.repeat(256_000)
    const long = 'apple '.repeat(100_000)
    for (const content of [spaces + long, long + spaces]) {
      const { input_tokens } = await leftRow('chat', { messages: [{ role: 'user', content }] })
      expect(input_tokens).toBeGreaterThan(90_000)
      expect(input_tokens).toBeLessThan(120_000)
    }
  })
})

const seconds = (count: number): string => Buffer.alloc(48_000 * count).toString('base64')
const chatFrame = (delta: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta }] })}\n\n`
const geminiFrame = (...of: object[]): string =>
  `data: ${JSON.stringify({ candidates: [{ index: 0, content: { role: 'model', parts: of } }] })}\r\n\r\n`
const spoken = (count: number): string => chatFrame({ audio: { id: 'a', data: seconds(count) } })
const drawn = (width: number, height: number): string =>
  chatFrame({
    images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${picture(width, height)}` } }],
  })
const inline = (mimeType: string, data: string): object => ({ inlineData: { mimeType, data } })
const PCM = 'audio/L16;codec=pcm;rate=24000'

describe('the output other than text of a stream that its client left', () => {
  /** Output tokens besides those of the two words. */
  const arrived = async (
    ...given: Parameters<typeof leftRow>
  ): Promise<UsageRow & { readonly beside: number }> => {
    const row = await leftRow(...given)
    return { ...row, beside: row.output_tokens - 2 }
  }

  test.each<[string, Dialect, Dialect, string[], number]>([
    ['sound of chat', 'chat', 'chat', [spoken(1), spoken(2)], 60],
    ['sound of gemini', 'gemini', 'gemini', [geminiFrame(inline(PCM, seconds(3)))], 60],
    ['sound that is converted', 'messages', 'chat', [spoken(3)], 60],
    ['images of chat', 'chat', 'chat', [drawn(1_024, 1_536), drawn(1_024, 1_024)], 6_240 + 4_160],
    [
      'an image of gemini',
      'gemini',
      'gemini',
      [geminiFrame(inline('image/png', picture(1_024, 1_024)))],
      1_290,
    ],
    [
      'a large picture',
      'gemini',
      'gemini',
      [geminiFrame(inline('image/png', picture(1_024, 1_024, 200_000)))],
      1_290,
    ],
    [
      'half of a large image',
      'gemini',
      'gemini',
      [geminiFrame(inline('image/png', picture(9, 9, 300_000))).slice(0, 200_000)],
      1_290,
    ],
    [
      'an image that is converted',
      'chat',
      'gemini',
      [geminiFrame(inline('image/png', picture(1_024, 1_024)))],
      1_290,
    ],
  ])(
    'media that arrived before the client left are charged as tokens where they have no price: %s',
    async (_, client, upstream, more, tokens) => {
      const { beside, input_tokens, output_tokens, quota } = await arrived(client, {}, upstream, { more })
      expect(beside).toBe(tokens)
      expect(quota).toBe(input_tokens + 4 * output_tokens)
    },
  )

  test('media that arrived before the client left are charged at their prices: by started seconds, or by image size', async () => {
    const more = [spoken(2), spoken(1), drawn(1_024, 1_024), drawn(512, 512)]
    const { beside, input_tokens, output_tokens, quota } = await arrived('chat', {}, 'chat', {
      more,
      model: 'chat-media',
    })
    expect(beside).toBe(0)
    expect(quota).toBe(input_tokens + 4 * output_tokens + 3 * 1_000 + 20_000 + 50_000)
  })

  test('the cost lines of a stream that its client left add up to the charge', async () => {
    const more = [spoken(3), drawn(1_024, 1_024), drawn(512, 512), drawn(1_024, 1_024)]
    const { id, quota, input_tokens } = await arrived('chat', {}, 'chat', { more, model: 'chat-media' })
    const { data } = await manage<{
      cost: { kind: string; count: number; price_usd: string; quota: string }[]
    }>(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)
    expect(data.cost).toEqual([
      { kind: 'input', count: input_tokens, price_usd: '2', quota: String(input_tokens) },
      { kind: 'output', count: 2, price_usd: '8', quota: '8' },
      { kind: 'second', count: 3, price_usd: '0.002', quota: '3000' },
      { kind: 'image', count: 2, price_usd: '0.04', quota: '40000' },
      { kind: 'image', count: 1, price_usd: '0.1', quota: '50000' },
    ])
    expect(data.cost.reduce((sum, line) => sum + Number(line.quota), 0)).toBe(quota)
  })

  const printed = 'apple '.repeat(1_500)
  const blockOf = (block: object): string =>
    `event: content_block_start\ndata: ${JSON.stringify({ type: 'content_block_start', index: 1, content_block: block })}\n\n` +
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":1}\n\n'
  const itemOf = (item: object): string =>
    `event: response.output_item.done\ndata: ${JSON.stringify({ type: 'response.output_item.done', sequence_number: 9, output_index: 1, item })}\n\n`
  const ran = geminiFrame({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: printed } })
  const block = blockOf({
    type: 'bash_code_execution_tool_result',
    tool_use_id: 's',
    content: { type: 'bash_code_execution_result', stdout: printed, stderr: '', return_code: 0, content: [] },
  })
  const item = itemOf({
    type: 'code_interpreter_call',
    id: 'ci',
    code: 'x',
    outputs: [{ type: 'logs', logs: printed }],
  })
  test.each<[string, Dialect, Dialect, string, container?: number]>([
    ['results of gemini', 'gemini', 'gemini', ran],
    ['results of gemini, converted', 'chat', 'gemini', ran],
    [
      'code of gemini, converted',
      'chat',
      'gemini',
      geminiFrame({ executableCode: { language: 'PYTHON', code: printed } }),
    ],
    ['blocks of messages', 'messages', 'messages', block],
    ['blocks of messages, converted', 'chat', 'messages', block],
    // A session of a code interpreter costs 0.03 USD.
    ['items of responses', 'responses', 'responses', item, 15_000],
    ['items of responses, converted', 'chat', 'responses', item, 15_000],
    [
      'output of a shell',
      'responses',
      'responses',
      itemOf({ type: 'shell_call_output', call_id: 's', output: [{ stdout: printed, stderr: '' }] }),
    ],
  ])(
    'code that the provider ran, and what it printed, are charged before the client left: %s',
    async (_, client, upstream, frame, container = 0) => {
      const { beside, input_tokens, output_tokens, quota } = await arrived(client, {}, upstream, {
        more: [frame],
      })
      expect(beside).toBeGreaterThanOrEqual(1_490)
      expect(beside).toBeLessThan(1_700)
      expect(quota).toBe(input_tokens + 4 * output_tokens + container)
    },
  )

  const HIDDEN = 'A'.repeat(1_600)
  const thought = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, index: 1, ...fields })}\n\n`
  test.each<[string, Dialect, Dialect, string[]]>([
    [
      'redacted',
      'messages',
      'messages',
      [thought('content_block_start', { content_block: { type: 'redacted_thinking', data: HIDDEN } })],
    ],
    [
      'signed, without their text',
      'messages',
      'messages',
      [
        thought('content_block_start', { content_block: { type: 'thinking', thinking: '', signature: '' } }),
        thought('content_block_delta', { delta: { type: 'signature_delta', signature: HIDDEN } }),
      ],
    ],
    [
      'encrypted',
      'responses',
      'responses',
      [
        thought('response.output_item.done', {
          sequence_number: 9,
          output_index: 1,
          item: { id: 'r', type: 'reasoning', summary: [], encrypted_content: HIDDEN },
        }),
      ],
    ],
    [
      'encrypted, in chat',
      'chat',
      'chat',
      [chatFrame({ reasoning_details: [{ type: 'reasoning.encrypted', data: HIDDEN }] })],
    ],
  ])(
    'hidden thoughts of a stream that its client left are charged: %s',
    async (_, client, upstream, more) => {
      expect((await arrived(client, {}, upstream, { more })).beside).toBe(300)
    },
  )
})

describe('a member of a delta that the gateway does not know, in a stream that its client left', () => {
  const frame = (event: object & { readonly type?: string }): string =>
    `${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`
  const chunk = (delta: object): string =>
    frame({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 7,
      model: 'm',
      choices: [{ index: 0, delta }],
    } as object)
  const FRAMES: Readonly<Record<Dialect, (value: unknown) => readonly string[]>> = {
    chat: (value) => [chunk({ parsed: value })],
    messages: (value) => [
      frame({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'parsed_delta', parsed: value },
      } as object),
    ],
    responses: (value) => [
      frame({ type: 'response.parsed.delta', output_index: 0, sequence_number: 9, delta: value } as object),
    ],
    gemini: (value) => [
      frame({ candidates: [{ index: 0, content: { parts: [{ parsed: value }] } }] } as object),
    ],
  }

  test.each(
    DIALECTS.flatMap((dialect) => [
      [dialect, 'a text', WORDS] as const,
      [dialect, 'an object', { answer: { words: WORDS } }] as const,
    ]),
  )('counts as output: %s, %s', async (dialect, _, value) => {
    const { output_tokens: output } = await leftRow(dialect, {}, dialect, { more: FRAMES[dialect](value) })
    expect(output).toBeGreaterThanOrEqual(2_000)
  })

  test.each(
    DIALECTS.flatMap((client) =>
      DIALECTS.filter((upstream) => upstream !== client).map((upstream) => [client, upstream] as const),
    ),
  )('counts by its bytes in a converted stream: %s from %s', async (client, upstream) => {
    const more = FRAMES[upstream](WORDS)
    const { output_tokens: output } = await leftRow(client, {}, upstream, { more })
    expect(output).toBeGreaterThanOrEqual(2_000)
  })

  test.each<[Dialect, readonly string[]]>([
    [
      'chat',
      [chunk({ role: 'assistant', annotations: [{ title: WORDS }], extra_content: { google: WORDS } })],
    ],
    [
      'messages',
      [
        frame({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'citations_delta', citation: { cited_text: WORDS } },
        } as object),
      ],
    ],
    [
      'gemini',
      [
        frame({
          candidates: [{ index: 0, content: { parts: [{ videoMetadata: { offset: WORDS } }] } }],
        } as object),
      ],
    ],
  ])('is none of those that the model has not written: %s', async (dialect, more) => {
    const { output_tokens: output } = await leftRow(dialect, {}, dialect, { more })
    expect(output).toBeLessThan(20)
  })
})
