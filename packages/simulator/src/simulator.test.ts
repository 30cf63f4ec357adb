import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Fields, asFields, asList, asString } from './fields.ts'
import { type Simulator, startSimulator } from './start-simulator.ts'

let simulator: Simulator
const INSTANT = { firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }

beforeAll(async () => {
  simulator = await startSimulator(INSTANT)
})
afterAll(() => simulator.close())

const WEATHER = {
  name: 'get_weather',
  description: 'Current weather at a place',
  schema: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'fahrenheit'] } },
    required: ['city', 'unit'],
  },
}

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { authorization: 'Bearer key', 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

async function chat(body: object): Promise<Fields> {
  const response = await post(`${simulator.chatUrl}/chat/completions`, {
    model: 'demo-chat',
    messages: [{ role: 'user', content: 'Tell me about lighthouses' }],
    ...body,
  })
  return asFields(await response.json())
}

async function messages(body: object): Promise<Fields> {
  const response = await post(`${simulator.messagesUrl}/messages`, {
    model: 'demo-claude',
    max_tokens: 500,
    messages: [{ role: 'user', content: 'Tell me about lighthouses' }],
    ...body,
  })
  return asFields(await response.json())
}

/** The data of every event of a stream, parsed if it is JSON. */
async function events(url: string, body: object): Promise<Fields[]> {
  const text = await (await post(url, { ...body, stream: true })).text()
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => asFields(JSON.parse(data ?? '')))
}

function firstChoice(completion: Fields): { message: Fields; finish: unknown } {
  const choice = asFields(asList(completion.choices)[0])
  return { message: asFields(choice.message), finish: choice.finish_reason }
}

describe('chat', () => {
  test('a simulated chat answer is about the topic of its request, and the same for the same request', async () => {
    const [one, two] = await Promise.all([chat({}), chat({})])
    expect(firstChoice(one).message.content).toContain('lighthouses')
    expect(firstChoice(one)).toEqual(firstChoice(two))
    expect(one.id).not.toBe(two.id)
  })

  test('a simulated chat stream has the same content as the response to the same request without streaming', async () => {
    const whole = await chat({})
    const chunks = await events(`${simulator.chatUrl}/chat/completions`, {
      model: 'demo-chat',
      messages: [{ role: 'user', content: 'Tell me about lighthouses' }],
    })
    const said = chunks
      .map(({ choices }) => asString(asFields(asFields(asList(choices)[0]).delta).content))
      .join('')
    expect(said).toBe(firstChoice(whole).message.content)
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
  })

  test('a simulated chat stream has its usage in a last chunk without choices if the request wants it', async () => {
    const chunks = await events(`${simulator.chatUrl}/chat/completions`, {
      model: 'demo-chat',
      messages: [{ role: 'user', content: 'Tell me about lighthouses' }],
      max_tokens: 7,
      stream_options: { include_usage: true },
    })
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 7 } })
  })

  test("the simulator's list of chat models contains its simulated models", async () => {
    const { data } = await new OpenAI({ apiKey: 'key', baseURL: simulator.chatUrl }).models.list()
    expect(data.map(({ id }) => id)).toEqual(['demo-chat', 'demo-reason'])
  })

  test('a simulated chat stream ends with [DONE]', async () => {
    const response = await post(`${simulator.chatUrl}/chat/completions`, {
      model: 'demo-chat',
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/)
  })

  test('max_completion_tokens ends a simulated chat answer with the finish reason length', async () => {
    const completion = await chat({ max_completion_tokens: 3 })
    expect(firstChoice(completion).finish).toBe('length')
    expect(asFields(completion.usage).completion_tokens).toBe(3)
  })

  test('a stop sequence ends a simulated chat answer before it', async () => {
    const { message, finish } = firstChoice(await chat({ stop: 'lighthouses' }))
    expect(finish).toBe('stop')
    expect(message.content).not.toContain('lighthouses')
  })

  test('the usage of a simulated chat request for n answers adds up all of them', async () => {
    const completion = await chat({ n: 3, max_tokens: 4 })
    expect(asList(completion.choices)).toHaveLength(3)
    expect(asFields(completion.usage).completion_tokens).toBe(12)
  })

  test('the simulator answers a chat message that needs a tool by a call that fits its schema, and uses the result', async () => {
    const tools = [
      { type: 'function', function: { ...WEATHER, schema: undefined, parameters: WEATHER.schema } },
    ]
    const user = { role: 'user', content: 'What is the weather in Lisbon, in celsius?' }
    const asked = firstChoice(await chat({ tools, messages: [user] }))
    expect(asked.finish).toBe('tool_calls')
    const call = asFields(asList(asked.message.tool_calls)[0])
    expect(JSON.parse(asString(asFields(call.function).arguments))).toEqual({
      city: 'Lisbon',
      unit: 'celsius',
    })
    const result = { role: 'tool', tool_call_id: call.id, content: '{"temperature":19}' }
    const answered = firstChoice(await chat({ tools, messages: [user, asked.message, result] }))
    expect(answered.finish).toBe('stop')
    expect(answered.message.content).toContain('temperature is 19')
  })

  test('the simulator answers a chat message that needs no tool in text, unless a tool is required', async () => {
    const tools = [
      { type: 'function', function: { ...WEATHER, schema: undefined, parameters: WEATHER.schema } },
    ]
    expect(firstChoice(await chat({ tools })).finish).toBe('stop')
    expect(firstChoice(await chat({ tools, tool_choice: 'required' })).finish).toBe('tool_calls')
  })

  test('a simulated reasoning model thinks before its chat answer, and its reasoning tokens are counted', async () => {
    const completion = await chat({ model: 'demo-reason' })
    expect(firstChoice(completion).message.reasoning_content).toContain('lighthouses')
    const { reasoning_tokens } = asFields(asFields(completion.usage).completion_tokens_details)
    expect(reasoning_tokens).toBeGreaterThan(10)
  })

  test('the simulator reports a long prefix of a chat that it has seen before as cached', async () => {
    const long = 'The same long preface again. '.repeat(200)
    const ask = (last: string) =>
      chat({
        max_tokens: 1,
        messages: [
          { role: 'system', content: long },
          { role: 'user', content: last },
        ],
      })
    expect(await ask('one')).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: 0 } } })
    const second = await ask('two')
    const cached = asFields(asFields(second.usage).prompt_tokens_details).cached_tokens
    // 5,800 characters are eleven whole blocks of 512, each 128 tokens.
    expect(cached).toBe(11 * 128)
  })

  test("the official OpenAI client reads the simulator's chat streams and tool calls", async () => {
    const client = new OpenAI({ apiKey: 'key', baseURL: simulator.chatUrl, maxRetries: 0 })
    const stream = client.chat.completions.stream({
      model: 'demo-chat',
      messages: [{ role: 'user', content: 'weather in Oslo' }],
      tools: [
        {
          type: 'function',
          function: {
            name: WEATHER.name,
            description: WEATHER.description,
            parameters: WEATHER.schema,
          },
        },
      ],
    })
    const completion = await stream.finalChatCompletion()
    expect(completion.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      function: { name: 'get_weather' },
    })
  })
})

describe('messages', () => {
  test('a simulated messages stream has the events of the protocol in order', async () => {
    const kinds = (
      await events(`${simulator.messagesUrl}/messages`, {
        model: 'demo-claude',
        max_tokens: 2000,
        thinking: { type: 'enabled', budget_tokens: 1024 },
        messages: [{ role: 'user', content: 'Tell me about lighthouses' }],
      })
    ).map(({ type }) => type)
    expect(kinds.filter((kind, at) => kind !== kinds[at - 1])).toEqual([
      'message_start',
      'content_block_start',
      'ping',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  test('a simulated message with thinking begins with its thoughts, which are signed', async () => {
    const { content } = await messages({
      max_tokens: 2000,
      thinking: { type: 'enabled', budget_tokens: 1024 },
    })
    expect(content).toMatchObject([
      { type: 'thinking', signature: expect.stringMatching(/^.{64,}$/) },
      { type: 'text' },
    ])
  })

  test('max_tokens and stop_sequences end a simulated message with the stop reasons of the protocol', async () => {
    expect(await messages({ max_tokens: 2 })).toMatchObject({
      stop_reason: 'max_tokens',
      usage: { output_tokens: 2 },
    })
    expect(await messages({ stop_sequences: ['lighthouses'] })).toMatchObject({
      stop_reason: 'stop_sequence',
      stop_sequence: 'lighthouses',
    })
  })

  test('the simulated messages API calls a tool with an object, and uses its result', async () => {
    const tools = [{ name: WEATHER.name, description: WEATHER.description, input_schema: WEATHER.schema }]
    const user = { role: 'user', content: 'The weather in Lisbon in celsius, please' }
    const asked = await messages({ tools, messages: [user] })
    expect(asked).toMatchObject({
      stop_reason: 'tool_use',
      content: [{ type: 'text' }, { type: 'tool_use', input: { city: 'Lisbon', unit: 'celsius' } }],
    })
    const { id } = asFields(asList(asked.content)[1])
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] }
    const assistant = { role: 'assistant', content: asked.content }
    const answered = await messages({ tools, messages: [user, assistant, result] })
    expect(answered.stop_reason).toBe('end_turn')
    expect(JSON.stringify(answered.content)).toContain('rain')
  })

  test('the simulated messages API writes a marked prefix to the cache first, and reads it from there afterwards', async () => {
    // 6,000 characters and a line's end: 1,501 tokens.
    const system = [{ type: 'text', text: 'abcde '.repeat(1000), cache_control: { type: 'ephemeral' } }]
    const first = asFields((await messages({ system, max_tokens: 1 })).usage)
    const second = asFields((await messages({ system, max_tokens: 1 })).usage)
    expect(first).toMatchObject({ cache_creation_input_tokens: 1501, cache_read_input_tokens: 0 })
    expect(second).toMatchObject({ cache_creation_input_tokens: 0, cache_read_input_tokens: 1501 })
    // The message and its role are 33 characters more: 1,509 tokens in all.
    expect([first.input_tokens, second.input_tokens]).toEqual([8, 8])
  })
})

describe('rerank', () => {
  test('the simulator ranks documents that share words with the query first', async () => {
    const response = await post(`${simulator.rerankUrl}/rerank`, {
      model: 'demo-rerank',
      query: 'capital of France',
      documents: ['Rivers of Peru', { text: 'Paris is the capital of France' }, 'France'],
      top_n: 2,
      return_documents: true,
    })
    expect(await response.json()).toMatchObject({
      results: [{ index: 1, document: { text: 'Paris is the capital of France' } }, { index: 2 }],
      meta: { billed_units: { search_units: 1 } },
    })
  })
})

describe('embeddings', () => {
  const vectors = async (fields: object): Promise<number[][]> => {
    const response = await post(`${simulator.embeddingsUrl}/embeddings`, { model: 'demo-embed', ...fields })
    const { data } = (await response.json()) as { data: { embedding: number[] }[] }
    return data.map(({ embedding }) => embedding)
  }
  const similarity = (one: readonly number[] = [], other: readonly number[] = []): number =>
    one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0)

  test('simulated embeddings are unit vectors, the same for the same text, and close for similar texts', async () => {
    const input = [
      'The capital of France is Paris',
      'Paris, the capital of France',
      'Rivers of Peru carry silt',
    ]
    const [one, near, far] = await vectors({ input })
    expect(similarity(one, one)).toBeCloseTo(1, 5)
    expect(similarity(one, near)).toBeGreaterThan(0.8)
    expect(similarity(one, far)).toBeLessThan(0.4)
    expect(await vectors({ input })).toEqual([one, near, far])
    expect((await vectors({ input: 'a', dimensions: 7 }))[0]).toHaveLength(7)
  })
})
