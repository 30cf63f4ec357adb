import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ACCOUNT, type BedrockAnswer, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import type { Double } from '../fixtures/providers/double.ts'

const MODELS = {
  nova: 'eu.amazon.nova-lite-v1:0',
  nova2: 'global.amazon.nova-2-lite-v1:0',
  llama: 'us.meta.llama4-maverick-17b-instruct-v1:0',
  mistral: 'mistral.mistral-large-2407-v1:0',
  oss: 'openai.gpt-oss-120b-1:0',
  claude: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
  claude5: 'eu.anthropic.claude-opus-5-v1:0',
}
type Name = keyof typeof MODELS
const NAMES = Object.keys(MODELS) as Name[]

const USAGE = {
  inputTokens: 12,
  outputTokens: 7,
  totalTokens: 119,
  cacheReadInputTokens: 60,
  cacheWriteInputTokens: 40,
  cacheDetails: [{ ttl: '1h', inputTokens: 10 }],
}
const CALL = { toolUseId: 'tooluse_9aB3xK2mQ7Rt5WvYc1Dz8f', name: 'weather', input: { city: 'Paris' } }
const WHOLE = {
  output: {
    message: {
      role: 'assistant',
      content: [
        { reasoningContent: { reasoningText: { text: 'Where?', signature: 'c2lnbmVk' } } },
        { text: 'I look.' },
        { toolUse: CALL },
      ],
    },
  },
  stopReason: 'tool_use',
  usage: USAGE,
  metrics: { latencyMs: 1 },
}
const block = (contentBlockIndex: number, delta: object) => ({
  contentBlockDelta: { contentBlockIndex, delta },
})
const stop = (contentBlockIndex: number) => ({ contentBlockStop: { contentBlockIndex } })
const EVENTS = [
  { messageStart: { role: 'assistant' } },
  block(0, { text: '' }),
  stop(0),
  block(1, { reasoningContent: { text: 'Whe' } }),
  block(1, { reasoningContent: { text: 're?' } }),
  block(1, { reasoningContent: { signature: 'c2lnbmVk' } }),
  stop(1),
  block(2, { text: 'I ' }),
  block(2, { text: 'look.' }),
  stop(2),
  {
    contentBlockStart: {
      contentBlockIndex: 3,
      start: { toolUse: { toolUseId: 'tooluse_9aB3xK2mQ7Rt5WvYc1Dz8f', name: 'weather' } },
    },
  },
  block(3, { toolUse: { input: '{"city":' } }),
  block(3, { toolUse: { input: '"Paris"}' } }),
  stop(3),
  { messageStop: { stopReason: 'tool_use' } },
  { metadata: { usage: USAGE, metrics: { latencyMs: 1 } } },
]

let bedrock: Double
let gateway: RunningGateway
let answer: BedrockAnswer

beforeAll(async () => {
  bedrock = await startBedrock(() => answer)
  gateway = await startGateway({
    config: {
      models: priced(NAMES),
      channels: [
        {
          name: 'bedrock',
          provider: 'bedrock',
          protocol: 'converse',
          region: REGION,
          base_url: bedrock.url,
          keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`],
          models: NAMES,
          model_mapping: MODELS,
        },
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await bedrock?.close()
})
beforeEach(() => {
  answer = { whole: WHOLE, events: EVENTS }
  bedrock.received.length = 0
})

const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } } }

/** A request of each dialect that offers a tool: its path, its body, and its path for streams. */
const CLIENTS = {
  chat: (model: string, stream: boolean) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      stream,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Weather?' },
      ],
      tools: [{ type: 'function', function: { name: 'weather', parameters: PARAMETERS } }],
    },
  }),
  messages: (model: string, stream: boolean) => ({
    path: '/v1/messages',
    body: {
      model,
      stream,
      max_tokens: 50,
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'Weather?' }],
      tools: [{ name: 'weather', input_schema: PARAMETERS }],
    },
  }),
  responses: (model: string, stream: boolean) => ({
    path: '/v1/responses',
    body: {
      model,
      stream,
      store: false,
      instructions: 'Be brief.',
      input: 'Weather?',
      tools: [{ type: 'function', name: 'weather', parameters: PARAMETERS, strict: false }],
    },
  }),
  gemini: (model: string, stream: boolean) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'Weather?' }] }],
      tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: PARAMETERS }] }],
    },
  }),
} as const
const DIALECTS = Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]

function ask(dialect: keyof typeof CLIENTS, model: Name, stream = false): Promise<FullResponse> {
  const { path, body } = CLIENTS[dialect](model, stream)
  return call(gateway.url, body, { key: 'ann', path })
}

function chat(model: Name, fields: Record<string, unknown>): Promise<FullResponse> {
  const body = { model, messages: [{ role: 'user', content: 'hi' }], ...fields }
  return call(gateway.url, body, { key: 'ann', path: '/v1/chat/completions' })
}

function sent() {
  expect(bedrock.received).toHaveLength(1)
  return JSON.parse(bedrock.received[0]?.body.toString() ?? '')
}

function dropped({ headers }: FullResponse): string[] {
  return String(headers['x-gateway-dropped'] ?? '')
    .split(', ')
    .filter(Boolean)
    .sort()
}

describe.each(DIALECTS)('a call in %s', (dialect) => {
  test("a call of Bedrock's Converse API is converted and signed, and its whole response is returned in the client's dialect", async () => {
    const { status, text } = await ask(dialect, 'nova')
    expect(status, text).toBe(200)
    expect(bedrock.received[0]?.path).toBe(`/model/${encodeURIComponent(MODELS.nova)}/converse`)
    expect(sent()).toMatchObject({
      system: [{ text: 'Be brief.' }],
      messages: [{ role: 'user', content: [{ text: 'Weather?' }] }],
      toolConfig: { tools: [{ toolSpec: { name: 'weather', inputSchema: { json: PARAMETERS } } }] },
    })
    for (const part of ['I look.', 'weather', 'Paris', 'Where?', MODELS.nova]) expect(text).toContain(part)
  })

  test("a stream of Bedrock's Converse API is converted, and charged by the usage at its end", async () => {
    const { status, headers, text } = await ask(dialect, 'nova', true)
    expect(status, text).toBe(200)
    expect(bedrock.received[0]?.path).toBe(`/model/${encodeURIComponent(MODELS.nova)}/converse-stream`)
    expect(headers['content-type']).toContain('text/event-stream')
    for (const part of ['I ', 'look.', 'weather', 'Paris', 'Whe']) expect(text).toContain(part)
    expect(databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))).toMatchObject({
      input_tokens: 12,
      output_tokens: 7,
      cache_read_tokens: 60,
      cache_write_5m_tokens: 30,
      cache_write_1h_tokens: 10,
    })
  })

  test("a stream of Bedrock's Converse API with an exception ends with an error event of its type and message", async () => {
    answer = {
      events: EVENTS.slice(0, 9),
      exception: { name: 'modelStreamErrorException', message: 'The model broke off' },
    }
    const { text } = await ask(dialect, 'nova', true)
    expect(text).toContain('The model broke off')
  })
})

test.each([
  ['after its reason', { events: EVENTS.slice(0, -1) }],
  ['inside a frame after it', { events: EVENTS, cutBytes: 9 }],
])(
  'a Converse stream that ends %s is complete for the client, and its tokens are counted by the gateway',
  async (_, cut) => {
    answer = cut
    const { headers, text } = await ask('chat', 'nova', true)
    expect(text).toContain('[DONE]')
    const charged = databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))
    expect(charged?.input_tokens).toBeGreaterThan(0)
    expect(charged?.output_tokens).toBeGreaterThan(0)
  },
)

test.each([
  ['without a reason', { events: EVENTS.slice(0, -2) }],
  ['inside the frame of its reason', { events: EVENTS.slice(0, -1), cutBytes: 9 }],
])('a Converse stream that is cut off %s does not look finished to the client', async (_, cut) => {
  answer = cut
  expect((await ask('chat', 'nova', true)).text).not.toContain('[DONE]')
})

test('an answer that a Bedrock guardrail stopped has the finish reason content_filter, or refusal', async () => {
  answer = {
    whole: {
      ...WHOLE,
      output: { message: { content: [{ text: 'No.' }] } },
      stopReason: 'guardrail_intervened',
    },
  }
  expect((await ask('chat', 'nova')).json()).toMatchObject({ choices: [{ finish_reason: 'content_filter' }] })
  expect((await ask('messages', 'nova')).json()).toMatchObject({ stop_reason: 'refusal' })
})

test("an error of Bedrock's Converse API keeps its status, and gets the type of its exception", async () => {
  answer = { error: { status: 400, name: 'ValidationException', message: 'Malformed input request' } }
  const { status, text } = await ask('chat', 'nova')
  expect(status).toBe(400)
  expect(JSON.parse(text)).toMatchObject({
    error: { type: 'invalid_request_error', message: 'Malformed input request' },
  })
})

const HISTORY = [
  { role: 'user', content: 'Weather?' },
  {
    role: 'assistant',
    content: 'I look.',
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }],
  },
  { role: 'tool', tool_call_id: 'call_1', content: 'Rain' },
  { role: 'user', content: 'And tomorrow?' },
]

describe('a conversation with tools', () => {
  test.each(NAMES)(
    'a conversation with earlier tool calls is accepted by Converse model %s even if the request offers no tools',
    async (model) => {
      const { status, text } = await chat(model, { messages: HISTORY })
      expect(status, text).toBe(200)
      expect(sent().toolConfig.tools).toEqual([
        { toolSpec: { name: 'weather', inputSchema: { json: { type: 'object' } } } },
      ])
    },
  )

  test('text next to tool calls and results is removed, and listed as dropped, for Converse models that do not accept it', async () => {
    const response = await chat('llama', { messages: HISTORY })
    expect(sent().messages).toEqual([
      { role: 'user', content: [{ text: 'Weather?' }] },
      { role: 'assistant', content: [{ toolUse: { toolUseId: 'call_1', name: 'weather', input: {} } }] },
      { role: 'user', content: [{ toolResult: { toolUseId: 'call_1', content: [{ text: 'Rain' }] } }] },
      { role: 'assistant', content: [{ text: '...' }] },
      { role: 'user', content: [{ text: 'And tomorrow?' }] },
    ])
    expect(dropped(response)).toEqual(['content'])
  })

  test('tool call ids have nine characters for models that need them, equal for a call and its result', async () => {
    await chat('mistral', { messages: HISTORY })
    const [, called, answered] = sent().messages
    const id = called.content[1].toolUse.toolUseId
    expect(id).toMatch(/^[a-z\d]{9}$/)
    expect(answered.content[0].toolResult.toolUseId).toBe(id)
  })

  const named = { tool_choice: { type: 'function', function: { name: 'weather' } } }
  const tools = ['weather', 'time'].map((name) => ({
    type: 'function',
    function: { name, parameters: PARAMETERS },
  }))
  test.each([
    ['nova', named, { tool: { name: 'weather' } }, 2, []],
    ['mistral', named, { any: {} }, 1, []],
    ['mistral', { tool_choice: 'required' }, { any: {} }, 2, []],
    ['llama', { tool_choice: 'required' }, undefined, 2, ['tool_choice']],
    ['nova', { tool_choice: 'none' }, undefined, undefined, []],
  ] as const)(
    'tool_choice is converted for Converse as far as the model %s supports it: %j',
    async (model, choice, toolChoice, count, left) => {
      const response = await chat(model, { tools, ...choice })
      expect(response.status, response.text).toBe(200)
      const { toolConfig } = sent()
      expect(toolConfig?.toolChoice).toEqual(toolChoice)
      expect(toolConfig?.tools.length).toBe(count)
      expect(dropped(response)).toEqual([...left])
    },
  )
})

const FORMAT = {
  type: 'json_schema',
  json_schema: { name: 'person', strict: true, schema: { type: 'object', properties: { '2': {}, '1': {} } } },
}

describe('a schema for the answer', () => {
  test.each(['oss', 'claude'] as const)(
    'a JSON schema for the answer is sent to the Converse model %s, which supports it, with its keys in order',
    async (model) => {
      const { status, text } = await chat(model, { response_format: FORMAT })
      expect(status, text).toBe(200)
      expect(sent().outputConfig.textFormat.structure.jsonSchema).toEqual({
        schema: JSON.stringify({ ...FORMAT.json_schema.schema, additionalProperties: false }),
        name: 'person',
      })
    },
  )

  test("a JSON schema becomes a forced tool for Converse models without schemas, and its input becomes the answer's text", async () => {
    const content = [{ toolUse: { ...CALL, name: 'person', input: { name: 'Bob' } } }]
    answer = { whole: { ...WHOLE, output: { message: { role: 'assistant', content } } } }
    const { text } = await chat('nova', { response_format: FORMAT })
    expect(sent().toolConfig.toolChoice).toEqual({ tool: { name: 'person' } })
    expect(JSON.parse(text)).toMatchObject({
      choices: [{ finish_reason: 'stop', message: { content: '{"name":"Bob"}' } }],
    })
  })

  test('a JSON schema becomes an instruction in the prompt for Converse models whose tools cannot be forced', async () => {
    const response = await chat('llama', { response_format: FORMAT })
    expect(sent().system[0].text).toContain('"properties"')
    expect(dropped(response)).toEqual(['response_format'])
  })
})

describe('thinking', () => {
  test.each([
    [
      'nova2',
      { reasoning_effort: 'medium' },
      { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' } },
    ],
    ['oss', { reasoning_effort: 'high' }, { reasoning_effort: 'high' }],
    ['claude', { reasoning_effort: 'low' }, { thinking: { type: 'enabled', budget_tokens: 1280 } }],
    ['llama', { reasoning_effort: 'low' }, undefined],
  ] as const)(
    "thinking is requested from the Converse model %s in that model's own field: %j",
    async (model, fields, additional) => {
      const response = await chat(model, fields)
      expect(response.status, response.text).toBe(200)
      expect(sent().additionalModelRequestFields).toEqual(additional)
      expect(dropped(response)).toEqual(additional ? [] : ['thinking'])
    },
  )

  test("thinking stays for a Converse model that refuses an assistant's turn at the end, as a turn of the user follows", async () => {
    const messages = [{ role: 'assistant', content: 'I ' }]
    const response = await chat('claude5', { messages, reasoning_effort: 'low' })
    expect(sent().messages.slice(1)).toEqual([
      { role: 'assistant', content: [{ text: 'I ' }] },
      { role: 'user', content: [{ text: '...' }] },
    ])
    expect(sent().additionalModelRequestFields).toMatchObject({ thinking: { type: 'adaptive' } })
    expect(dropped(response)).toEqual(['messages.prefill'])
  })

  test('thinking in a conversation is sent back with its signature to the Converse model that signed it', async () => {
    const first = await ask('messages', 'claude')
    bedrock.received.length = 0
    const { status, text } = await call(
      gateway.url,
      {
        ...CLIENTS.messages('claude', false).body,
        messages: [
          { role: 'user', content: 'Weather?' },
          { role: 'assistant', content: JSON.parse(first.text).content },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 'tooluse_9aB3xK2mQ7Rt5WvYc1Dz8f', content: 'Rain' },
            ],
          },
        ],
      },
      { key: 'ann', path: '/v1/messages' },
    )
    expect(status, text).toBe(200)
    expect(sent().messages[1].content[0]).toEqual(WHOLE.output.message.content[0])
  })

  test('thinking is sent back with its signature to a Converse model even if the chat client does not send the thinking', async () => {
    await ask('chat', 'claude')
    bedrock.received.length = 0
    const messages = [
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [
          {
            id: 'tooluse_9aB3xK2mQ7Rt5WvYc1Dz8f',
            type: 'function',
            function: { name: 'weather', arguments: '{"city":"Paris"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'tooluse_9aB3xK2mQ7Rt5WvYc1Dz8f', content: 'Rain' },
    ]
    const { status, text } = await chat('claude', { messages })
    expect(status, text).toBe(200)
    expect(sent().messages[1].content[0]).toEqual(WHOLE.output.message.content[0])
  })
})

describe('cache marks', () => {
  const body = (model: string, ttl?: string) => {
    const cache_control = { type: 'ephemeral', ...(ttl && { ttl }) }
    return {
      model,
      max_tokens: 5,
      system: [{ type: 'text', text: 'long', cache_control }],
      tools: [{ name: 'weather', input_schema: PARAMETERS, cache_control }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control }] }],
    }
  }
  test.each([
    ['claude', { type: 'default', ttl: '1h' }, 2, []],
    ['nova', { type: 'default' }, 1, ['cache_control', 'cache_control.ttl']],
    ['llama', undefined, 1, ['cache_control']],
  ] as const)(
    'cache_control becomes cache points of Converse as far as the model %s supports them',
    async (model, point, tools, left) => {
      const response = await call(gateway.url, body(model, '1h'), { key: 'ann', path: '/v1/messages' })
      expect(response.status, response.text).toBe(200)
      const request = sent()
      const marked = point ? [{ cachePoint: point }] : []
      expect(request.system).toEqual([{ text: 'long' }, ...marked])
      expect(request.messages[0].content).toEqual([{ text: 'hi' }, ...marked])
      expect(request.toolConfig.tools).toHaveLength(tools)
      expect(dropped(response)).toEqual([...left])
    },
  )
})

describe('files', () => {
  const PNG = 'iVBORw0KGgo='
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }
  const file = (filename: string) => ({
    type: 'file',
    file: { filename, file_data: 'data:application/pdf;base64,JVBERi0xLjQ=' },
  })

  test('files are sent to Converse as images and documents with valid, distinct names, and with a text beside them', async () => {
    const content = [image, file('a  b_c.pdf'), file('a b-c.pdf')]
    const { status, text } = await chat('nova', { messages: [{ role: 'user', content }] })
    expect(status, text).toBe(200)
    const document = (name: string) => ({
      document: { format: 'pdf', name, source: { bytes: 'JVBERi0xLjQ=' } },
    })
    expect(sent().messages[0].content).toEqual([
      { image: { format: 'png', source: { bytes: PNG } } },
      document('a b-c'),
      document('a b-c 2'),
      { text: '...' },
    ])
  })

  test('a file of a type that no Converse model supports makes the call a 400 instead of being left out', async () => {
    const tiff = { type: 'image_url', image_url: { url: 'data:image/tiff;base64,SUkqAAgAAAA=' } }
    const { status } = await chat('nova', { messages: [{ role: 'user', content: [tiff] }] })
    expect(status).toBe(400)
    expect(bedrock.received).toEqual([])
  })
})
