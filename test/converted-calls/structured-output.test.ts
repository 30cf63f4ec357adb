import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedContent } from '../fixtures/client.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { AMPLE, channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Block, streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, startFixture, type Fixture } from '../fixtures/fixture.ts'

const OLD = ['claude-3-5-haiku', 'claude-sonnet-4-20250514', 'claude-opus-4-1', 'claude-old-by-mapping']
const NEW = ['claude-sonnet-4-5', 'claude-opus-5', 'nameless', 'claude-3-new-by-mapping']

function configure(upstream: ScriptedUpstream): Configuration {
  return {
    options: { retries: 0 },
    models: priced([...OLD, ...NEW, 'gpt']),
    channels: [
      channel('claude', upstream.baseUrl('claude'), {
        protocol: 'messages',
        models: [...OLD, ...NEW],
        model_mapping: {
          'claude-old-by-mapping': 'eu.anthropic.claude-3-7-sonnet-20250219-v1:0',
          'claude-3-new-by-mapping': 'claude-haiku-4-5-20251001',
        },
      }),
      channel('gpt', upstream.baseUrl('gpt')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')], { quota: AMPLE })],
  }
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(configure)
})
afterAll(() => fixture?.close())

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const FORMAT = { type: 'json_schema', json_schema: { name: 'place', schema: SCHEMA, strict: true } }
const CITY = '{"city": "Bern"}'
const WEATHER = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }

function sent(lane = 'claude'): Record<string, unknown> & { system?: { text: string }[] } {
  return JSON.parse(fixture.upstream.only(lane).text)
}

function answering(...blocks: Block[]): void {
  fixture.upstream.script('claude', wholeMessage(blocks))
}

describe('a chat client that requests JSON by a schema', () => {
  test.each(NEW)(
    "a chat request's response_format becomes output_config for %s, which supports schemas",
    async (model) => {
      answering({ text: CITY })
      const answer = await fixture.chat('ann', ask(model, { response_format: FORMAT }))
      expect(sent()).toMatchObject({ output_config: { format: { type: 'json_schema', schema: SCHEMA } } })
      expect(sent()).not.toHaveProperty('tools')
      expect(answer.json().choices[0]?.message.content).toBe(CITY)
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    },
  )

  test('a chat request with a schema and a reasoning effort keeps both, and its tools, when it is converted to messages', async () => {
    answering({ text: CITY })
    const model = 'claude-sonnet-4-5'
    await fixture.chat(
      'ann',
      ask(model, { response_format: FORMAT, reasoning_effort: 'low', tools: [WEATHER] }),
    )
    expect(sent()).toMatchObject({
      output_config: { format: { type: 'json_schema', schema: SCHEMA } },
      tools: [{ name: 'weather' }],
    })
    expect(sent()['thinking']).toBeDefined()
  })

  test.each(OLD)(
    "a chat request's schema becomes one forced tool for %s, which lacks schemas, and the tool's input is the answer",
    async (model) => {
      answering({ id: 'toolu_1', name: 'place', input: CITY })
      const answer = await fixture.chat('ann', ask(model, { response_format: FORMAT }))
      expect(sent()).toMatchObject({
        tools: [{ name: 'place', input_schema: SCHEMA }],
        tool_choice: { type: 'tool', name: 'place', disable_parallel_tool_use: true },
      })
      expect(sent()).not.toHaveProperty('output_config')
      const [choice] = answer.json().choices
      expect(choice?.message).toEqual({ role: 'assistant', content: CITY, refusal: null })
      expect(choice?.finish_reason).toBe('stop')
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    },
  )

  test.each(['what is asked', 'x'.repeat(65), undefined])(
    "a chat request's schema becomes a tool named response where the schema's name is not a valid tool name: %s",
    async (name) => {
      answering({ id: 'toolu_1', name: 'response', input: CITY })
      const format = { type: 'json_schema', json_schema: { name, schema: SCHEMA } }
      const answer = await fixture.chat('ann', ask('claude-3-5-haiku', { response_format: format }))
      expect(sent()['tool_choice']).toMatchObject({ type: 'tool', name: 'response' })
      expect(answer.json().choices[0]?.message.content).toBe(CITY)
    },
  )

  test("a stream of the forced tool that replaces a chat request's schema becomes text, piece by piece", async () => {
    fixture.upstream.script('claude', streamedMessage([{ id: 'toolu_1', name: 'place', input: CITY }]))
    const answer = await fixture.chat(
      'ann',
      ask('claude-3-5-haiku', { response_format: FORMAT, stream: true }),
    )
    expect(streamedContent(answer.text)).toBe(CITY)
    expect(answer.text).not.toContain('tool_calls')
    expect(answer.text).toContain('"content":"{\\"city\\":"')
    expect(answer.text).toContain('"finish_reason":"stop"')
    expect(answer.text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test.each([false, true])(
    "an answer to a chat request's schema is {} where the model calls the forced tool without input (streamed: %s)",
    async (stream) => {
      const block = { id: 'toolu_1', name: 'place', input: stream ? 'null' : '{}' }
      fixture.upstream.script('claude', stream ? streamedMessage([block]) : wholeMessage([block]))
      const answer = await fixture.chat('ann', ask('claude-3-5-haiku', { response_format: FORMAT, stream }))
      const said = stream ? streamedContent(answer.text) : answer.json().choices[0]?.message.content
      expect(said).toBe('{}')
    },
  )

  test("a truncated answer to a chat request's schema has the finish_reason length", async () => {
    fixture.upstream.script(
      'claude',
      wholeMessage([{ id: 'toolu_1', name: 'place', input: '{}' }], { stop: 'max_tokens' }),
    )
    const answer = await fixture.chat('ann', ask('claude-3-5-haiku', { response_format: FORMAT }))
    expect(answer.json().choices[0]?.finish_reason).toBe('length')
  })

  test("thinking is dropped and listed where a chat request's schema becomes a forced tool, as both cannot be combined", async () => {
    answering({ id: 'toolu_1', name: 'place', input: CITY })
    const asked = ask('claude-opus-4-1', { response_format: FORMAT, reasoning_effort: 'high' })
    const answer = await fixture.chat('ann', asked)
    expect(sent()).not.toHaveProperty('thinking')
    expect(answer.headers['x-gateway-dropped']).toBe('thinking')
  })

  test.each([
    ['tools of its own', { tools: [WEATHER] }],
    ['web search', { web_search_options: {} }],
    [
      'a begun answer',
      {
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: '{' },
        ],
      },
    ],
    [
      'a schema of something else than an object',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'array' } } } },
    ],
  ])(
    "a chat request's schema with %s becomes a system prompt for an older model, and is listed as dropped",
    async (_, fields) => {
      answering({ text: CITY })
      const asked = { response_format: FORMAT, ...fields }
      const answer = await fixture.chat('ann', ask('claude-3-5-haiku', asked))
      const schema = JSON.stringify(asked.response_format.json_schema.schema)
      expect(sent().system?.map(({ text }) => text)).toEqual([expect.stringContaining(schema)])
      expect(sent()).not.toHaveProperty('tool_choice')
      expect(String(answer.headers['x-gateway-dropped']).split(', ')).toContain('response_format')
    },
  )

  test("a chat request's schema becomes a system prompt where the answer is prefilled, as both cannot be combined", async () => {
    answering({ text: CITY })
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: '{' },
    ]
    const answer = await fixture.chat('ann', {
      model: 'claude-sonnet-4-5',
      messages,
      response_format: FORMAT,
    })
    expect(sent()).not.toHaveProperty('output_config')
    expect(sent().system?.[0]?.text).toContain(JSON.stringify(SCHEMA))
    expect(answer.headers['x-gateway-dropped']).toBe('response_format')
  })

  test("an older model's call of the client's own tool reaches the client although the chat request has a schema", async () => {
    answering({ id: 'toolu_1', name: 'weather', input: CITY })
    const asked = ask('claude-3-5-haiku', { response_format: FORMAT, tools: [WEATHER] })
    const answer = await fixture.chat('ann', asked)
    expect(answer.json().choices[0]?.finish_reason).toBe('tool_calls')
  })

  test.each([
    ['claude-3-5-haiku', { type: 'json_object' }],
    ['claude-sonnet-4-5', { type: 'json_object' }],
    ['claude-sonnet-4-5', { type: 'json_schema', json_schema: { name: 'anything' } }],
  ])(
    'a response_format without a schema becomes a system prompt for %s, after the existing one: %j',
    async (model, format) => {
      answering({ text: CITY })
      const messages = [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
      ]
      const answer = await fixture.chat('ann', {
        ...ask(model),
        messages,
        response_format: format,
      })
      expect(sent().system?.map(({ text }) => text)).toEqual([
        'Be brief.',
        expect.stringContaining('JSON object'),
      ])
      expect(sent()).not.toHaveProperty('output_config')
      expect(sent()).not.toHaveProperty('tools')
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    },
  )

  test('a response_format of type text adds nothing to a request converted to messages', async () => {
    answering({ text: 'Hello.' })
    await fixture.chat('ann', ask('claude-sonnet-4-5', { response_format: { type: 'text' } }))
    expect(sent()).not.toHaveProperty('output_config')
    expect(sent()).not.toHaveProperty('system')
  })

  test.each([
    ['response_format.type', { type: 'yaml' }],
    ['response_format.json_schema', { type: 'json_schema' }],
    ['response_format.json_schema.schema', { type: 'json_schema', json_schema: { name: 'x', schema: [] } }],
  ])('an invalid response_format of a chat request is a 400 that names %s', async (path, format) => {
    const answer = await fixture.chat('ann', ask('claude-sonnet-4-5', { response_format: format }))
    expect(answer.status).toBe(400)
    expect(answer.json().error.message).toContain(`'${path}'`)
  })

  test("the official OpenAI client's parse helper gets an answer that follows its schema", async () => {
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
    answering({ id: 'toolu_1', name: 'place', input: CITY })
    const answer = await client.chat.completions.parse({
      model: 'claude-3-5-haiku',
      messages: [{ role: 'user', content: 'hi' }],
      response_format: FORMAT as OpenAI.ResponseFormatJSONSchema,
    })
    expect(JSON.parse(answer.choices[0]?.message.content ?? '')).toEqual({ city: 'Bern' })
  })
})

describe('a messages client that requests JSON by a schema', () => {
  const format = { type: 'json_schema', schema: SCHEMA }
  const asked = (fields: object): object => ({ ...ask('gpt'), max_tokens: 100, ...fields })
  const options = { path: '/v1/messages' }

  test.each([
    ['output_config.format', { output_config: { format } }],
    ['output_format, as clients of the beta do', { output_format: format }],
  ])("a messages request's schema in %s becomes response_format for a chat upstream", async (_, fields) => {
    fixture.upstream.script('gpt', wholeChat({ text: CITY }))
    const answer = await fixture.chat('ann', asked(fields), options)
    expect(answer.status).toBe(200)
    expect(sent('gpt')['response_format']).toEqual({
      type: 'json_schema',
      json_schema: { name: 'response', schema: SCHEMA, strict: true },
    })
    expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    expect(JSON.parse(answer.text).content).toMatchObject([{ type: 'text', text: CITY }])
  })

  test.each([
    ['output_config.format.type', { output_config: { format: { type: 'yaml' } } }],
    ['output_config.format.schema', { output_config: { format: { type: 'json_schema' } } }],
    ['output_format', { output_format: 'json' }],
    ['output_config', { output_config: [] }],
  ])('an invalid output_config of a messages request is a 400 that names %s', async (path, fields) => {
    const answer = await fixture.chat('ann', asked(fields), options)
    expect(answer.status).toBe(400)
    expect(answer.json().error.message).toContain(`'${path}'`)
  })
})
