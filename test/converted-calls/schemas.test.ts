import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { refusalByClaude, refusalByOpenAi, refusalOfTool } from '../conversion/schema-subsets.ts'

const CHANNELS = ['chat', 'messages', 'responses', 'gemini'] as const
type Dialect = (typeof CHANNELS)[number]

const ANSWERS = {
  chat: wholeChat({ text: '{}' }),
  messages: wholeMessage([{ text: '{}' }]),
  responses: wholeResponse({ text: '{}' }),
  gemini: wholeGemini({ text: '{}' }),
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([...CHANNELS]),
    channels: CHANNELS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

type Schema = Record<string, unknown>

/** A request of each dialect for an answer by a schema, or with a tool that has it. */
const REQUESTS: Record<
  Dialect,
  (model: string, fields: { format?: Schema; tool?: Schema; strict?: boolean }) => object
> = {
  chat: (model, { format, tool, strict }) => ({
    model,
    messages: [{ role: 'user', content: 'hi' }],
    ...(format && {
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: format, strict: true } },
    }),
    ...(tool && { tools: [{ type: 'function', function: { name: 'f', parameters: tool, strict } }] }),
  }),
  messages: (model, { format, tool, strict }) => ({
    model,
    max_tokens: 100,
    messages: [{ role: 'user', content: 'hi' }],
    ...(format && { output_config: { format: { type: 'json_schema', schema: format } } }),
    ...(tool && { tools: [{ name: 'f', input_schema: tool, strict }] }),
  }),
  responses: (model, { format, tool, strict }) => ({
    model,
    input: 'hi',
    ...(format && { text: { format: { type: 'json_schema', name: 'n', schema: format, strict: true } } }),
    ...(tool && { tools: [{ type: 'function', name: 'f', parameters: tool, strict: strict ?? false }] }),
  }),
  gemini: (_model, { format, tool }) => ({
    contents: [{ parts: [{ text: 'hi' }] }],
    ...(format && {
      generationConfig: { responseMimeType: 'application/json', responseJsonSchema: format },
    }),
    ...(tool && { tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: tool }] }] }),
  }),
}
const PATHS: Record<Dialect, (model: string) => string> = {
  chat: () => '/v1/chat/completions',
  messages: () => '/v1/messages',
  responses: () => '/v1/responses',
  gemini: (model) => `/v1beta/models/${model}:generateContent`,
}

/** The schema and `strict` of the format and of the tool that an upstream received. */
function received(to: Dialect): { format?: Schema; formatStrict?: boolean; tool?: Schema; strict?: boolean } {
  const body = JSON.parse(fixture.upstream.only(to).text)
  const [tool] = body.tools ?? []
  switch (to) {
    case 'chat':
      return {
        format: body.response_format?.json_schema.schema,
        formatStrict: body.response_format?.json_schema.strict,
        tool: tool?.function.parameters,
        strict: tool?.function.strict,
      }
    case 'messages':
      return { format: body.output_config?.format.schema, tool: tool?.input_schema, strict: tool?.strict }
    case 'responses':
      return {
        format: body.text?.format.schema,
        formatStrict: body.text?.format.strict,
        tool: tool?.parameters,
        strict: tool?.strict,
      }
    case 'gemini':
      return {
        format: body.generationConfig?.responseJsonSchema,
        tool: tool?.functionDeclarations[0].parametersJsonSchema,
      }
  }
}

async function send(
  from: Dialect,
  to: Dialect,
  fields: { format?: Schema; tool?: Schema; strict?: boolean },
): Promise<FullResponse> {
  fixture.upstream.forget(to)
  fixture.upstream.script(to, ANSWERS[to])
  const answer = await fixture.chat('ann', REQUESTS[from](to, fields), { path: PATHS[from](to) })
  expect(answer.status, answer.text).toBe(200)
  return answer
}

const pairs = CHANNELS.flatMap((from) => CHANNELS.filter((to) => to !== from).map((to) => ({ from, to })))

/** Not closed, with an optional property and constraints. */
const OPEN = {
  type: 'object',
  properties: {
    age: { type: 'integer', minimum: 18, description: 'In years.' },
    names: { type: 'array', items: { type: 'string', maxLength: 9 }, minItems: 2 },
  },
  required: ['age'],
}
/** In the subset of every provider. */
const CLOSED = {
  type: 'object',
  properties: { '10': { type: 'string' }, '2': { type: ['number', 'null'] } },
  required: ['10', '2'],
  additionalProperties: false,
}
const UNION = {
  oneOf: [
    {
      type: 'object',
      properties: { kind: { const: 'file' }, path: { type: 'string' } },
      required: ['kind', 'path'],
    },
    {
      type: 'object',
      properties: { kind: { const: 'url' }, url: { type: 'string' } },
      required: ['kind', 'url'],
    },
  ],
}

describe.each(pairs)('the schemas of a $from client at a $to channel', ({ from, to }) => {
  test('a schema for the answer arrives in the form that the provider accepts, and the header names what changed', async () => {
    const answer = await send(from, to, { format: OPEN })
    const { format, formatStrict } = received(to)
    if (to === 'messages') {
      expect(refusalByClaude(format)).toBeUndefined()
      expect(format).toMatchObject({
        properties: {
          age: { type: 'integer', description: 'In years.\n\nConstraints: at least 18.' },
          names: {
            items: { description: 'Constraints: at most 9 characters.' },
            description: 'Constraints: at least 2 items.',
          },
        },
        required: ['age'],
      })
    } else expect(format).toEqual(OPEN)
    if (to === 'chat' || to === 'responses') expect(formatStrict).toBe(false)
    expect(answer.headers['x-gateway-dropped']).toBe(to === 'gemini' ? undefined : 'schema')
  })

  test('a schema in the subset of all providers arrives unchanged and enforced, for the answer and for a tool', async () => {
    const answer = await send(from, to, { format: CLOSED, tool: CLOSED, strict: true })
    const { format, tool, strict, formatStrict } = received(to)
    expect(JSON.stringify([format, tool])).toBe(JSON.stringify([CLOSED, CLOSED]))
    if (from !== 'gemini' && to !== 'gemini') expect(strict).toBe(true)
    if (to === 'chat' || to === 'responses') {
      expect(formatStrict).toBe(true)
      expect(refusalByOpenAi(format)).toBeUndefined()
    }
    expect(answer.headers['x-gateway-dropped']).toBe(to === 'gemini' ? 'tools.strict' : undefined)
  })

  test('a tool whose schema is a union arrives as an object with all properties, each alternative in words', async () => {
    const answer = await send(from, to, { tool: UNION })
    const { tool } = received(to)
    if (to === 'gemini') {
      expect(tool).toEqual(UNION)
      return
    }
    expect(refusalOfTool(tool)).toBeUndefined()
    expect(tool).toEqual({
      type: 'object',
      properties: {
        kind: { anyOf: [{ const: 'file' }, { const: 'url' }] },
        path: { type: 'string' },
        url: { type: 'string' },
      },
      required: ['kind'],
      description:
        'Exactly one of these applies: (1) "kind" is "file", requires "kind", "path". (2) "kind" is "url", requires "kind", "url".',
    })
    expect(answer.headers['x-gateway-dropped']).toBe('schema')
  })

  test('a strict tool with an optional property is enforced by Anthropic in its subset, and not by OpenAI', async () => {
    if (from === 'gemini' || to === 'gemini') return
    const answer = await send(from, to, { tool: OPEN, strict: true })
    const { tool, strict } = received(to)
    if (to === 'messages') expect(refusalByClaude(tool)).toBeUndefined()
    else expect(tool).toEqual(OPEN)
    expect(strict).toBe(to === 'messages')
    expect(answer.headers['x-gateway-dropped']).toBe('schema')
  })
})

test.each(CHANNELS)(
  'the schemas of a %s client at a channel of its own dialect arrive as they are',
  async (dialect) => {
    const answer = await send(dialect, dialect, { format: OPEN, tool: UNION })
    expect(received(dialect)).toMatchObject({ format: OPEN, tool: UNION })
    expect(answer.headers['x-gateway-dropped']).toBeUndefined()
  },
)

test.each(['chat', 'messages', 'responses'] as const)(
  "a schema in Google's form arrives at a %s channel as JSON Schema",
  async (to) => {
    fixture.upstream.script(to, ANSWERS[to])
    const parameters = {
      type: 'OBJECT',
      properties: {
        unit: { type: 'STRING', format: 'enum', enum: ['C', 'F'], nullable: true },
        days: { type: 'ARRAY', items: { type: 'INTEGER' }, minItems: '1' },
        place: { anyOf: [{ type: 'STRING' }, { type: 'NUMBER' }] },
      },
    }
    const request = {
      contents: [{ parts: [{ text: 'hi' }] }],
      tools: [{ functionDeclarations: [{ name: 'f', parameters }] }],
    }
    const answer = await fixture.chat('ann', request, { path: PATHS.gemini(to) })
    expect(received(to).tool).toEqual({
      type: 'object',
      properties: {
        unit: { type: ['string', 'null'], enum: ['C', 'F', null] },
        days: { type: 'array', items: { type: 'integer' }, minItems: 1 },
        place: { anyOf: [{ type: 'string' }, { type: 'number' }] },
      },
    })
    expect(answer.headers['x-gateway-dropped']).toBe('schema')
  },
)

describe('JSON without a schema', () => {
  const INSTRUCTION = expect.stringContaining('Answer with a JSON object')
  const gemini = (text: string, system?: string): object => ({
    contents: [{ parts: [{ text }] }],
    ...(system && { systemInstruction: { parts: [{ text: system }] } }),
    generationConfig: { responseMimeType: 'application/json' },
  })
  const chat = (text: string, system: string): object => ({
    model: 'responses',
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: text },
    ],
    response_format: { type: 'json_object' },
  })
  const responses = (input: string, instructions?: string): object => ({
    model: 'chat',
    input,
    instructions,
    text: { format: { type: 'json_object' } },
  })

  test.each<[Dialect, object, string[]]>([
    ['gemini', gemini('Three towns'), [INSTRUCTION, 'Three towns']],
    ['gemini', gemini('Towns as Json'), ['Towns as Json']],
    ['responses', responses('Three towns'), [INSTRUCTION, 'Three towns']],
    ['responses', responses('Three towns', 'Write JSON.'), ['Write JSON.', 'Three towns']],
  ])(
    'a request of %s for JSON has the word in its messages at a chat channel, because providers refuse it otherwise: %j',
    async (from, body, contents) => {
      fixture.upstream.forget('chat')
      fixture.upstream.script('chat', ANSWERS.chat)
      const answer = await fixture.chat('ann', body, { path: PATHS[from]('chat') })
      const sent = JSON.parse(fixture.upstream.only('chat').text)
      expect(sent.messages.map(({ content }: { content: unknown }) => content)).toEqual(contents)
      expect(sent.response_format).toEqual({ type: 'json_object' })
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    },
  )

  test.each<[Dialect, object, unknown[]]>([
    ['gemini', gemini('Three towns'), [INSTRUCTION, 'Three towns']],
    ['gemini', gemini('Towns as Json'), ['Towns as Json']],
    ['chat', chat('Three towns', 'You answer in JSON.'), ['You answer in JSON.', 'Three towns']],
    [
      'chat',
      chat('Three towns', 'Be brief.'),
      [['Be brief.', INSTRUCTION].map((text) => ({ type: 'input_text', text })), 'Three towns'],
    ],
  ])(
    'a request of %s for JSON has the word in its input at a responses channel, where instructions do not count: %j',
    async (from, body, contents) => {
      fixture.upstream.forget('responses')
      fixture.upstream.script('responses', ANSWERS.responses)
      const answer = await fixture.chat('ann', body, { path: PATHS[from]('responses') })
      const sent = JSON.parse(fixture.upstream.only('responses').text)
      expect(sent.input.map(({ content }: { content: unknown }) => content)).toEqual(contents)
      expect(sent).not.toHaveProperty('instructions')
      expect(sent.text.format).toEqual({ type: 'json_object' })
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    },
  )
})
