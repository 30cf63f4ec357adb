import { Ajv } from 'ajv'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DEMO_MODELS } from '@sluice/simulator'
import { call } from '../fixtures/client.ts'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'

let fixture: DemoFixture
let gateway: RunningGateway

beforeAll(async () => {
  fixture = await startDemoFixture()
  gateway = fixture.gateway
})
afterAll(() => fixture?.close())

const MODELS = [...DEMO_MODELS.chat, ...DEMO_MODELS.messages, ...DEMO_MODELS.responses]
const SCHEMA = {
  type: 'object',
  properties: {
    title: { type: 'string', minLength: 3 },
    travellers: { type: 'integer', minimum: 1, maximum: 9 },
    means: { enum: ['car', 'train'] },
    stops: { type: 'array', items: { $ref: '#/$defs/stop' }, minItems: 2 },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
  },
  required: ['title', 'travellers', 'means', 'stops', 'note'],
  additionalProperties: false,
  $defs: {
    stop: {
      type: 'object',
      properties: { place: { type: 'string' }, nights: { type: 'integer', exclusiveMinimum: 0 } },
      required: ['place', 'nights'],
      additionalProperties: false,
    },
  },
}
const MESSAGE = { role: 'user', content: 'Plan a journey to Lisbon by train for 4 people' }

/** The text parsed as JSON; it must satisfy the schema. */
function read(text: string): unknown {
  const value: unknown = JSON.parse(text)
  const ajv = new Ajv()
  expect(ajv.validate(SCHEMA, value), ajv.errorsText()).toBe(true)
  return value
}

/** The concatenated text of a stream's deltas, in either dialect. */
function streamed(text: string): string {
  const events = [...text.matchAll(/^data: (\{.*\})$/gm)].map(
    ([, data = '']) =>
      JSON.parse(data) as { delta?: { text?: string }; choices?: { delta: { content?: string | null } }[] },
  )
  return events.map(({ delta, choices }) => delta?.text ?? choices?.[0]?.delta.content ?? '').join('')
}

test.each(DEMO_MODELS.messages)(
  'the simulated model follows the schema of output_config, whole and streamed: %s',
  async (model) => {
    const body = {
      model,
      max_tokens: 1000,
      messages: [MESSAGE],
      output_config: { format: { type: 'json_schema', schema: SCHEMA } },
    }
    const options = { key: 'ann', path: '/v1/messages' }
    const whole = await call(gateway.url, body, options)
    const { content } = JSON.parse(whole.text) as { content: { type: string; text?: string }[] }
    const value = read(content.map(({ text }) => text ?? '').join(''))
    expect(value).toMatchObject({ travellers: 4, means: 'train' })
    const stream = await call(gateway.url, { ...body, stream: true }, options)
    expect(read(streamed(stream.text))).toEqual(value)
  },
)

test.each(MODELS)(
  'the simulated model follows the schema of response_format, whole and streamed: %s',
  async (model) => {
    const body = {
      model,
      messages: [MESSAGE],
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'journey', strict: true, schema: SCHEMA },
      },
    }
    const whole = await call(gateway.url, body, { key: 'ann' })
    const value = read(whole.json().choices[0]?.message.content ?? '')
    expect(value).toMatchObject({ travellers: 4, means: 'train' })
    const stream = await call(gateway.url, { ...body, stream: true }, { key: 'ann' })
    expect(read(streamed(stream.text))).toEqual(value)
  },
)

test.each(MODELS)(
  'the simulated model answers with a JSON object where the format is json_object: %s',
  async (model) => {
    const body = {
      model,
      messages: [{ role: 'system', content: 'Answer in JSON.' }, MESSAGE],
      response_format: { type: 'json_object' },
    }
    const whole = await call(gateway.url, body, { key: 'ann' })
    const value: unknown = JSON.parse(whole.json().choices[0]?.message.content ?? '')
    expect(value).toEqual({ answer: expect.stringContaining('journey') })
  },
)

test('the simulated model follows the schema of a conversation with tools after the tools have returned', async () => {
  const tools = [
    {
      name: 'get_weather',
      input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  ]
  const asked = { role: 'user', content: 'What is the weather in Lisbon?' }
  const used = {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 't1', name: 'get_weather', input: { city: 'Lisbon' } }],
  }
  const result = {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 't1', content: '{"temperature":19}' }],
  }
  const schema = {
    type: 'object',
    properties: { answer: { type: 'string' } },
    required: ['answer'],
    additionalProperties: false,
  }
  const answer = await call(
    gateway.url,
    {
      model: 'demo-claude',
      max_tokens: 500,
      tools,
      messages: [asked, used, result],
      output_config: { format: { type: 'json_schema', schema } },
    },
    { key: 'ann', path: '/v1/messages' },
  )
  const { content } = JSON.parse(answer.text) as { content: { text: string }[] }
  expect(JSON.parse(content[0]?.text ?? '')).toEqual({ answer: 'According to the tool, temperature is 19.' })
})

test.each([...MODELS, ...DEMO_MODELS.gemini])(
  "the simulated model calls a Gemini client's tool with arguments that fit parametersJsonSchema: %s",
  async (model) => {
    const declaration = { name: 'plan_journey', description: 'Plans a journey', parametersJsonSchema: SCHEMA }
    const body = {
      contents: [{ role: 'user', parts: [{ text: MESSAGE.content }] }],
      tools: [{ functionDeclarations: [declaration] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY' } },
    }
    const path = `/v1beta/models/${model}:generateContent`
    const { candidates } = JSON.parse((await call(gateway.url, body, { key: 'ann', path })).text) as {
      candidates: { content: { parts: { functionCall?: { name: string; args: unknown } }[] } }[]
    }
    const called = candidates[0]?.content.parts.find(({ functionCall }) => functionCall)?.functionCall
    expect(called?.name).toBe('plan_journey')
    expect(read(JSON.stringify(called?.args))).toMatchObject({ travellers: 4, means: 'train' })
  },
)

test.each([...MODELS, ...DEMO_MODELS.gemini])(
  'the simulated model completes a legacy prompt, whole and streamed: %s',
  async (model) => {
    const body = { model, prompt: 'Tell me about lighthouses', max_tokens: 100 }
    const options = { key: 'ann', path: '/v1/completions' }
    const whole = JSON.parse((await call(gateway.url, body, options)).text) as Completion
    const text = whole.choices[0]?.text ?? ''
    expect(text).toContain('lighthouses')
    const stream = await call(gateway.url, { ...body, stream: true }, options)
    const chunks = [...stream.text.matchAll(/^data: (\{.*\})$/gm)].map(
      ([, data = '']) => JSON.parse(data) as Completion,
    )
    expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).toBe(text)
  },
)

interface Completion {
  readonly choices: readonly { readonly text: string }[]
}
