import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

type Json = Record<string, unknown>
const CLIENTS = ['chat', 'messages', 'responses', 'gemini'] as const
type Client = (typeof CLIENTS)[number]
/** A model at a channel of each protocol. */
const MODELS = {
  chat: 'deepseek-chat',
  messages: 'claude-opus-4-7',
  responses: 'served-by-vllm',
  gemini: 'gemini-2.5-flash',
} as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(Object.values(MODELS)),
    channels: CLIENTS.map((name) =>
      channel(MODELS[name], upstream.baseUrl(MODELS[name]), { protocol: name }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

function path(client: Client, to: Client, stream = false): string {
  if (client === 'gemini')
    return `/v1beta/models/${MODELS[to]}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
  return { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' }[client]
}

/** What a provider answers: a text, or a call of a tool. */
function answered(to: Client, stream: boolean, name?: string): Behaviour {
  const calls = name === undefined ? {} : { calls: [{ id: 'call_1', name, input: '{"a":1}' }] }
  const text = name === undefined ? { text: 'hi' } : {}
  const blocks = name === undefined ? [{ text: 'hi' }] : [{ id: 'call_1', name, input: '{"a":1}' }]
  const gemini = name === undefined ? { text: 'hi' } : { calls: [{ name, args: '{"a":1}' }] }
  switch (to) {
    case 'chat':
      return stream ? streamedChat({ ...text, ...calls }) : wholeChat({ ...text, ...calls })
    case 'messages':
      return stream ? streamedMessage(blocks) : wholeMessage(blocks)
    case 'responses':
      return stream ? streamedResponse({ ...text, ...calls }) : wholeResponse({ ...text, ...calls })
    case 'gemini':
      return stream ? streamedGemini(gemini) : wholeGemini(gemini)
  }
}

interface Sent {
  readonly answer: FullResponse
  /** The request that the provider got. */
  readonly body: Json
  readonly dropped: string
}

/** Sends a request of one protocol to a channel of another. */
async function send(
  client: Client,
  to: Client,
  fields: Json,
  { stream = false, tool }: { readonly stream?: boolean; readonly tool?: string | undefined } = {},
): Promise<Sent> {
  const lane = MODELS[to]
  fixture.upstream.script(lane, answered(to, stream, tool))
  const body = client === 'gemini' ? fields : { model: lane, ...(stream && { stream }), ...fields }
  const answer = await call(fixture.gateway.url, body, {
    path: path(client, to, stream),
    key: 'ann',
    headers: { 'x-goog-api-key': 'sk-ann' },
  })
  expect(answer.status, answer.text).toBe(200)
  return {
    answer,
    body: JSON.parse(fixture.upstream.only(lane).text),
    dropped: String(answer.headers['x-gateway-dropped'] ?? ''),
  }
}

const TEXTS = ['One.', 'Two.'] as const
const typed = (type: string): Json[] => TEXTS.map((text) => ({ type, text }))

/** A conversation with two texts in each role, and a call with its result. */
const IN_TWO_TEXTS: Readonly<Record<'messages' | 'responses' | 'gemini', Json>> = {
  messages: {
    max_tokens: 50,
    system: typed('text'),
    messages: [
      { role: 'user', content: typed('text') },
      {
        role: 'assistant',
        content: [...typed('text'), { type: 'tool_use', id: 'call_1', name: 'look', input: {} }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'call_1', content: typed('text') }],
      },
    ],
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
  },
  responses: {
    input: [
      { role: 'system', content: typed('input_text') },
      { role: 'user', content: typed('input_text') },
      { role: 'assistant', content: typed('output_text') },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: typed('input_text') },
    ],
    tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }],
  },
  gemini: {
    systemInstruction: { parts: TEXTS.map((text) => ({ text })) },
    contents: [
      { role: 'user', parts: TEXTS.map((text) => ({ text })) },
      {
        role: 'model',
        parts: [
          ...TEXTS.map((text) => ({ text })),
          { functionCall: { id: 'call_1', name: 'look', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [{ functionResponse: { id: 'call_1', name: 'look', response: { output: 'One.Two.' } } }],
      },
    ],
    tools: [{ functionDeclarations: [{ name: 'look' }] }],
  },
}

describe('content that consists of texts', () => {
  test.each(['messages', 'responses', 'gemini'] as const)(
    'is one string for a chat channel, in every role: a client of %s',
    async (client) => {
      const { body } = await send(client, 'chat', IN_TWO_TEXTS[client])
      expect(body['messages']).toMatchObject([
        { role: 'system', content: 'One.\n\nTwo.' },
        { role: 'user', content: 'One.Two.' },
        { role: 'assistant', content: 'One.Two.' },
        { role: 'tool', content: 'One.Two.' },
      ])
    },
  )
})

const HIGH: Readonly<Record<'chat' | 'responses' | 'gemini', Json>> = {
  chat: { messages: [{ role: 'user', content: 'hi' }], reasoning_effort: 'high' },
  responses: { input: 'hi', reasoning: { effort: 'high', summary: 'auto' } },
  gemini: {
    contents: [{ parts: [{ text: 'hi' }] }],
    generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 5000 } },
  },
}

describe('thoughts that a model hides unless it is asked to show them', () => {
  test.each(['chat', 'responses', 'gemini'] as const)(
    'are asked for where the client wants to see them: %s',
    async (client) => {
      const { body } = await send(client, 'messages', HIGH[client])
      expect(body['thinking']).toEqual({ type: 'adaptive', display: 'summarized' })
    },
  )

  test.each([
    ['responses', { input: 'hi', reasoning: { effort: 'high' } }],
    [
      'gemini',
      {
        contents: [{ parts: [{ text: 'hi' }] }],
        generationConfig: { thinkingConfig: { thinkingBudget: 5000 } },
      },
    ],
  ] as const)('are left to the model where the client does not ask for them: %s', async (client, fields) => {
    const { body } = await send(client, 'messages', fields)
    expect(body['thinking']).toEqual({ type: 'adaptive' })
  })
})

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const HELLO = Buffer.from('a,b\n1,2\n').toString('base64')

/** Parts that clients of a protocol take from another, and the text or block that Claude gets. */
const MIXED: readonly (readonly [client: 'chat' | 'responses', part: Json, block: Json])[] = [
  ...['input_text', 'output_text', 'text', 'something_new'].flatMap((type) =>
    (['chat', 'responses'] as const).map(
      (client) => [client, { type, text: 'Hello' }, { type: 'text', text: 'Hello' }] as const,
    ),
  ),
  ...(['chat', 'responses'] as const).flatMap(
    (client) =>
      [
        [
          client,
          { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        ],
        [
          client,
          { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${PNG}` } },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        ],
        [
          client,
          { type: 'input_file', filename: 'a.csv', file_data: `data:text/csv;base64,${HELLO}` },
          {
            type: 'document',
            title: 'a.csv',
            source: { type: 'text', media_type: 'text/plain', data: 'a,b\n1,2\n' },
          },
        ],
        [
          client,
          { type: 'file', file: { filename: 'a.json', file_data: `data:application/json;base64,${HELLO}` } },
          {
            type: 'document',
            title: 'a.json',
            source: { type: 'text', media_type: 'text/plain', data: 'a,b\n1,2\n' },
          },
        ],
        [
          client,
          {
            type: 'search_result',
            title: 'T',
            source: 'https://a',
            content: [{ type: 'text', text: 'found' }],
          },
          { type: 'text', text: 'T\nhttps://a\n\nfound' },
        ],
      ] as const,
  ),
]

describe('parts of other protocols', () => {
  test.each(MIXED)('are read as what they are: %s %j', async (client, part, block) => {
    const content = [part]
    const fields =
      client === 'chat' ? { messages: [{ role: 'user', content }] } : { input: [{ role: 'user', content }] }
    const { body } = await send(client, 'messages', fields)
    expect(body['messages']).toEqual([{ role: 'user', content: [block] }])
  })

  test.each([
    [
      { type: 'search_result', title: 'T', source: 's', content: [{ type: 'text', text: 'found' }] },
      'T\ns\n\nfound',
    ],
    [{ type: 'tool_reference', tool_name: 'look' }, 'look'],
    [
      { type: 'web_search_result', url: 'https://a', title: 'T', encrypted_content: 'x', page_age: null },
      'T\nhttps://a',
    ],
    [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' } }, 'words'],
    [{ type: 'output_text', text: 'said' }, 'said'],
    [{ type: 'unknown_result', answer: 42 }, '{"type":"unknown_result","answer":42}'],
  ])('in the result of a tool become text, never an empty result: %j', async (block, text) => {
    const history = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: [block] }] },
    ]
    const fields = { max_tokens: 50, messages: history }
    const chat = await send('messages', 'chat', fields)
    expect(chat.body['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'call_1', content: text },
    ])
    const responses = await send('messages', 'responses', fields)
    expect(responses.body['input']).toMatchObject([
      { role: 'user' },
      { type: 'function_call' },
      { type: 'function_call_output', output: text },
    ])
    const gemini = await send('messages', 'gemini', fields)
    const response = text.startsWith('{') ? JSON.parse(text) : { output: text }
    expect(gemini.body['contents']).toMatchObject([
      { role: 'user' },
      { role: 'model' },
      { parts: [{ functionResponse: { response } }] },
    ])
  })

  const LINK = { type: 'resource_link', uri: 'x' }
  test.each<[Client, Json]>([
    ['chat', calledInChat([LINK])],
    ['chat', calledInChat([{ type: 'text', text: '' }, LINK])],
    ['messages', calledInMessages([LINK])],
    ['messages', calledInMessages([{ type: 'text', text: '' }, LINK])],
    ['responses', calledInResponses([LINK])],
    ['responses', calledInResponses([{ type: 'input_text', text: '' }, LINK])],
    ['gemini', calledInGemini({ response: {}, parts: [LINK] })],
  ])(
    'a result of a tool with nothing but parts that other protocols lack is sent as their JSON text: %s %j',
    async (client, fields) => {
      for (const to of CLIENTS.filter((other) => other !== client)) {
        const { body } = await send(client, to, fields)
        expect(resultIn(to, body)).toEqual(to === 'gemini' ? LINK : JSON.stringify(LINK))
      }
    },
  )

  test('a result of a tool that is only a picture refers to the chat message that has the picture', async () => {
    const picture = { type: 'input_image', image_url: `data:image/png;base64,${PNG}` }
    const { body } = await send('responses', 'chat', calledInResponses([picture]))
    expect(body['messages']).toEqual([
      { role: 'user', content: 'hi' },
      expect.objectContaining({ role: 'assistant' }),
      { role: 'tool', tool_call_id: 'call_1', content: 'The result is in the next message of the user.' },
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }],
      },
    ])
  })
})

function calledInChat(content: unknown): Json {
  const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
  return {
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content },
    ],
  }
}

function calledInMessages(content: unknown): Json {
  return {
    max_tokens: 50,
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content }] },
    ],
  }
}

function calledInResponses(output: unknown): Json {
  return {
    input: [
      { role: 'user', content: 'hi' },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output },
    ],
  }
}

function calledInGemini(outcome: Json): Json {
  return {
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', ...outcome } }] },
    ],
  }
}

/** What a provider got as the result of the only call of a request. */
function resultIn(to: Client, body: Json): unknown {
  const turns = body[{ chat: 'messages', messages: 'messages', responses: 'input', gemini: 'contents' }[to]]
  const last = (turns as Json[]).at(-1)
  const part = (member: string): Json | undefined => (last?.[member] as Json[] | undefined)?.[0]
  switch (to) {
    case 'chat':
      return last?.['content']
    case 'messages': {
      const content = part('content')?.['content']
      return Array.isArray(content) ? content.map(({ text }: Json) => text).join('|') : content
    }
    case 'responses':
      return last?.['output']
    case 'gemini':
      return (part('parts')?.['functionResponse'] as Json | undefined)?.['response']
  }
}

describe('a responses request at the chat endpoint', () => {
  const body = {
    input: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
    ],
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }],
    stream_options: { include_usage: true },
  }

  test.each(CLIENTS.flatMap((to) => [false, true].map((stream) => [to, stream] as const)))(
    'is answered in chat: a channel of %s, streamed %s',
    async (to, stream) => {
      const { answer, body: sent } = await send('chat', to, body, { stream, tool: 'f' })
      expect(JSON.stringify(sent)).toContain('Hello')
      expect(JSON.stringify(sent)).toContain('Be brief.')
      const chunks = stream
        ? answer.text.split('\n\n').filter((frame) => frame.startsWith('data: {'))
        : [`data: ${answer.text}`]
      expect(chunks.map((chunk) => JSON.parse(chunk.slice(6)))).toContainEqual(
        expect.objectContaining({
          choices: [
            expect.objectContaining({
              [stream ? 'delta' : 'message']: expect.objectContaining({
                tool_calls: [
                  expect.objectContaining({
                    type: 'function',
                    function: expect.objectContaining({ name: 'f' }),
                  }),
                ],
              }),
            }),
          ],
        }),
      )
      if (stream) expect(answer.text).toMatch(/"usage":\{"prompt_tokens"[^]*data: \[DONE\]\n\n$/)
      else expect(answer.json()).toMatchObject({ object: 'chat.completion', usage: {} })
    },
  )

  test.each([{ background: true }, { conversation: 'conv_1' }, { previous_response_id: 'resp_1' }])(
    'is a 400 if it needs stored responses: %j',
    async (fields) => {
      const answer = await fixture.chat('ann', { model: MODELS.chat, ...body, ...fields })
      expect(answer.status).toBe(400)
      expect(answer.json().error.message).toContain(Object.keys(fields)[0])
    },
  )
})

describe('settings of thinking and maxima in other spellings', () => {
  const messages = [{ role: 'user', content: 'hi' }]
  test.each([
    [{ thinking: { type: 'enabled', budget_tokens: 3000 } }, { thinkingBudget: 3000, includeThoughts: true }],
    [{ thinking: { type: 'enabled' } }, { thinkingBudget: 2048, includeThoughts: true }],
    [
      { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
      { thinkingBudget: 4096, includeThoughts: true },
    ],
    [{ thinking: { type: 'disabled' } }, { thinkingBudget: 0 }],
    [{ enable_thinking: true }, { thinkingBudget: 2048, includeThoughts: true }],
    [
      { enable_thinking: true, thinking_budget: 999 },
      { thinkingBudget: 999, includeThoughts: true },
    ],
    [{ enable_thinking: false }, { thinkingBudget: 0 }],
    [{ chat_template_kwargs: { enable_thinking: true } }, { thinkingBudget: 2048, includeThoughts: true }],
    [
      { chat_template_kwargs: { thinking: true, thinking_budget: 999 } },
      { thinkingBudget: 999, includeThoughts: true },
    ],
    [{ chat_template_kwargs: { enable_thinking: false } }, { thinkingBudget: 0 }],
    [{ chat_template_kwargs: { thinking: false } }, { thinkingBudget: 0 }],
    [
      { chat_template_kwargs: { enable_thinking: true }, reasoning_effort: 'high' },
      { thinkingBudget: 4096, includeThoughts: true },
    ],
  ])('chat clients: %j', async (fields, expected) => {
    const { body, dropped } = await send('chat', 'gemini', { messages, ...fields })
    expect(body['generationConfig']).toEqual({ thinkingConfig: expected })
    expect(dropped).toBe('')
  })

  test('settings of a template are sent as they are to a chat channel, and named if another cannot have them', async () => {
    const fields = { messages, chat_template_kwargs: { enable_thinking: false, custom: 1 } }
    expect((await send('chat', 'chat', fields)).body['chat_template_kwargs']).toEqual(
      fields.chat_template_kwargs,
    )
    const { body, dropped } = await send('chat', 'gemini', fields)
    expect(body['generationConfig']).toEqual({ thinkingConfig: { thinkingBudget: 0 } })
    expect(dropped).toBe('chat_template_kwargs')
  })

  test('thinking without a budget means medium effort for converted messages requests', async () => {
    const fields = { max_tokens: 9000, messages, thinking: { type: 'enabled' } }
    const { body } = await send('messages', 'responses', fields)
    expect(body['reasoning']).toMatchObject({ effort: 'medium' })
  })

  test('thinking without a budget is sent as it is to a messages channel, whose provider may refuse it', async () => {
    const fields = { max_tokens: 9000, messages, thinking: { type: 'enabled' } }
    expect((await send('messages', 'messages', fields)).body['thinking']).toEqual({ type: 'enabled' })
    const words = 'thinking.enabled.budget_tokens: Field required'
    const body = { type: 'error', error: { type: 'invalid_request_error', message: words } }
    fixture.upstream.script(MODELS.messages, { kind: 'status', status: 400, body: JSON.stringify(body) })
    const refused = await call(
      fixture.gateway.url,
      { model: MODELS.messages, ...fields },
      { path: '/v1/messages', key: 'ann' },
    )
    expect([refused.status, refused.json()]).toMatchObject([400, body])
  })

  test.each(['max_tokens', 'max_completion_tokens'])('%s of -1 means no maximum', async (field) => {
    const native = await send('chat', 'chat', { messages, [field]: -1 })
    expect(native.body[field]).toBe(-1)
    const { body } = await send('chat', 'responses', { messages, [field]: -1 })
    expect(body).not.toHaveProperty('max_output_tokens')
  })

  test('a maximum below 16 is sent as it is to a server that is not known to refuse it', async () => {
    const { body, dropped } = await send('chat', 'responses', { messages, max_tokens: 1 })
    expect(body['max_output_tokens']).toBe(1)
    expect(dropped).toBe('')
  })
})

/** A request with a tool of some name, a call of it and its result. */
function withTool(client: Client, name: string, id: string): Json {
  const schema = { type: 'object', properties: {} }
  switch (client) {
    case 'chat':
      return {
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name, arguments: '{}' } }] },
          { role: 'tool', tool_call_id: id, content: 'done' },
        ],
        tools: [{ type: 'function', function: { name, parameters: schema } }],
        tool_choice: { type: 'function', function: { name } },
      }
    case 'messages':
      return {
        max_tokens: 50,
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: [{ type: 'tool_use', id, name, input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'done' }] },
        ],
        tools: [{ name, input_schema: schema }],
        tool_choice: { type: 'tool', name },
      }
    case 'responses':
      return {
        input: [
          { role: 'user', content: 'hi' },
          { type: 'function_call', call_id: id, name, arguments: '{}' },
          { type: 'function_call_output', call_id: id, output: 'done' },
        ],
        tools: [{ type: 'function', name, parameters: schema }],
        tool_choice: { type: 'function', name },
      }
    case 'gemini':
      return {
        contents: [
          { role: 'user', parts: [{ text: 'hi' }] },
          { role: 'model', parts: [{ functionCall: { id, name, args: {} } }] },
          { role: 'user', parts: [{ functionResponse: { id, name, response: { output: 'done' } } }] },
        ],
        tools: [{ functionDeclarations: [{ name, parametersJsonSchema: schema }] }],
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [name] } },
      }
  }
}

/** The form of an id of 88 characters, one of them a slash, at each provider. */
const SENT_ID = {
  chat: /^[\w-]{40}$/,
  messages: /^[\w-]{64}$/,
  responses: /^[\w-]{64}$/,
  gemini: /^call\/x{83}$/,
}
const ROADS = CLIENTS.flatMap((client) =>
  CLIENTS.filter((to) => to !== client).flatMap((to) =>
    [false, true].map((stream) => [client, to, stream] as const),
  ),
)

describe('names that a provider refuses', () => {
  test.each(ROADS)(
    'get a readable beginning and a digest, and are restored in the answer: %s to %s, streamed %s',
    async (client, to, stream) => {
      const name = to === 'gemini' ? 'files/read' : 'files.read'
      const id = `call/${'x'.repeat(83)}`
      const fields = withTool(client, name, id)
      const first = await send(client, to, fields, { stream })
      const names = [...JSON.stringify(first.body).matchAll(/"(files[^"]*)"/g)].map(([, found]) => found)
      expect(new Set(names).size).toBe(1)
      expect(names.length).toBeGreaterThan(2)
      expect(names[0]).toMatch(/^files_read_[0-9a-f]{16}$/)
      const ids = [...JSON.stringify(first.body).matchAll(/"(call[^"]*xx[^"]*)"/g)].map(([, found]) => found)
      expect(ids).toHaveLength(2)
      expect(new Set(ids).size).toBe(1)
      expect(ids[0]).toMatch(SENT_ID[to])
      const { answer } = await send(client, to, fields, { stream, tool: names[0] })
      expect(answer.text).toContain(JSON.stringify(name))
      expect(answer.text).not.toContain(String(names[0]))
    },
  )
})

/** The contents that a Gemini client gets in a stream, one for each chunk. */
function contentsOf(stream: string): readonly { readonly parts: readonly Json[] }[] {
  return stream
    .split('\r\n\r\n')
    .filter((frame) => frame.startsWith('data: '))
    .flatMap((frame) => JSON.parse(frame.slice(6)).candidates?.[0].content ?? [])
}

describe('thoughts in a history that has one content for each chunk of a stream', () => {
  test.each([false, true])(
    'are one block with its signature for the provider that signed it; with a call: %s',
    async (hasCall) => {
      const thought = { thinking: 'First this, then that.', signature: 'c2lnbmF0dXJl' }
      const tool = { id: 'toolu_1', name: 'look', input: '{}' }
      const lane = MODELS.messages
      const tools = { tools: [{ functionDeclarations: [{ name: 'look' }] }] }
      const asked = { role: 'user', parts: [{ text: 'hi' }] }
      fixture.upstream.script(lane, streamedMessage([thought, hasCall ? tool : { text: 'Oh' }]))
      const options = {
        path: path('gemini', 'messages', true),
        key: 'ann',
        headers: { 'x-goog-api-key': 'sk-ann' },
      }
      const config = { generationConfig: { thinkingConfig: { includeThoughts: true } } }
      const answer = await call(fixture.gateway.url, { contents: [asked], ...tools, ...config }, options)
      const chunks = contentsOf(answer.text)
      const next = hasCall
        ? { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'x' } } }] }
        : { role: 'user', parts: [{ text: 'and now?' }] }
      const { body } = await send('gemini', 'messages', {
        contents: [asked, ...chunks, next],
        ...tools,
        ...config,
      })
      const content = [
        { type: 'thinking', ...thought },
        ...(hasCall ? [{ type: 'tool_use' }] : [{ type: 'text', text: 'Oh' }]),
      ]
      expect(body['messages']).toMatchObject([
        { role: 'user' },
        { role: 'assistant', content },
        { role: 'user' },
      ])
    },
  )
})

describe('texts in a history that has one content for each chunk of a stream', () => {
  const asked = { role: 'user', parts: [{ text: 'hi' }] }
  const next = { role: 'user', parts: [{ text: 'and now?' }] }

  test.each([
    ['chat', 'messages', 'First\n\nanswer'],
    ['messages', 'messages', [{ type: 'text', text: 'First\n\nanswer' }]],
    ['responses', 'input', 'First\n\nanswer'],
  ] as const)('are one text for a provider of %s', async (to, field, content) => {
    const chunks = ['First', '\n\n', 'ans', 'wer'].map((text) => ({ role: 'model', parts: [{ text }] }))
    const { body } = await send('gemini', to, { contents: [asked, ...chunks, next] })
    expect(body[field]).toMatchObject([{ role: 'user' }, { role: 'assistant', content }, { role: 'user' }])
  })

  test('are found by the signatures that the gateway keeps for a client that drops thoughts', async () => {
    const thought = { thinking: 'First this.', signature: 'c2lnbmVk' }
    fixture.upstream.script(MODELS.messages, streamedMessage([thought, { text: 'Oh yes' }]))
    const config = { generationConfig: { thinkingConfig: { includeThoughts: true } } }
    const answer = await call(
      fixture.gateway.url,
      { contents: [asked], ...config },
      { path: path('gemini', 'messages', true), key: 'ann', headers: { 'x-goog-api-key': 'sk-ann' } },
    )
    const chunks = contentsOf(answer.text).flatMap(({ parts }) =>
      parts.flatMap(({ text, thought: isThought }) =>
        text && !isThought ? [{ role: 'model', parts: [{ text }] }] : [],
      ),
    )
    expect(chunks.length).toBeGreaterThan(1)
    const { body } = await send('gemini', 'messages', { contents: [asked, ...chunks, next], ...config })
    const content = [
      { type: 'thinking', ...thought },
      { type: 'text', text: 'Oh yes' },
    ]
    expect(body['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content },
      { role: 'user' },
    ])
  })
})
