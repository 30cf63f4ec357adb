import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { UNSIGNED_THOUGHT_ENVELOPE } from '../../packages/wire/src/signature-envelope.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody, usageText } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { messagesErrorText, streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { MODEL, MODES, type Mode, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture
let client: Anthropic
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  client = clientWith('sk-ann')
})
afterAll(() => fixture?.close())

const clientWith = (apiKey: string): Anthropic =>
  new Anthropic({ apiKey, baseURL: fixture.gateway.url, maxRetries: 0 })

const TEXT = 'Hello there, friend.'
const THOUGHT = 'A greeting is due.'
const CALLS = [
  { id: 'toolu_1', name: 'weather', input: '{"city":"Bern"}' },
  { id: 'toolu_2', name: 'weather', input: '{"city":"Basel"}' },
]
const COUNTS = {
  input_tokens: 30,
  cache_read_input_tokens: 70,
  cache_creation_input_tokens: 0,
  output_tokens: 7,
}
const messages = [{ role: 'user' as const, content: 'hi' }]
const weather = {
  name: 'weather',
  description: 'The weather in a town',
  input_schema: {
    type: 'object' as const,
    properties: { city: { type: 'string' as const } },
    required: ['city'],
  },
}
const LANE = { native: MODEL.messages, converted: MODEL.chat } as const

/** Scripts the upstream's response. Returns the model to request. */
function scriptModel(mode: Mode, what: 'text' | 'thoughts' | 'calls', stream: boolean): string {
  const calls = what === 'calls' ? CALLS : []
  if (mode === 'converted') {
    const said = {
      text: what === 'calls' ? 'Let me look.' : TEXT,
      ...(what === 'thoughts' && { thoughts: THOUGHT }),
      calls,
      usage: usageText(100, 7, 70),
    }
    fixture.upstream.script(MODEL.chat, stream ? streamedChat(said) : wholeChat(said))
    return MODEL.chat
  }
  const blocks = [
    ...(what === 'thoughts' ? [{ thinking: THOUGHT, signature: 'c2ln' }] : []),
    { text: what === 'calls' ? 'Let me look.' : TEXT },
    ...calls,
  ]
  const answer = { counts: COUNTS }
  fixture.upstream.script(
    MODEL.messages,
    stream ? streamedMessage(blocks, answer) : wholeMessage(blocks, answer),
  )
  return MODEL.messages
}

describe.each(MODES)('the official Anthropic client, %s', (mode) => {
  test('the Anthropic client gets a whole response with its usage', async () => {
    const { data, response } = await client.messages
      .create({ model: scriptModel(mode, 'thoughts', false), max_tokens: 100, messages })
      .withResponse()
    expect(data).toMatchObject({
      type: 'message',
      role: 'assistant',
      stop_reason: 'end_turn',
      stop_sequence: null,
    })
    expect(data.id).toMatch(/^msg_/)
    expect(data.content).toMatchObject([
      { type: 'thinking', thinking: THOUGHT },
      { type: 'text', text: TEXT },
    ])
    expect(data.usage).toMatchObject(COUNTS)
    expect(response.headers.get('x-request-id')).toBeTypeOf('string')
  })

  test('the Anthropic client assembles a complete message from a stream through its stream helper', async () => {
    const stream = client.messages.stream({
      model: scriptModel(mode, 'thoughts', true),
      max_tokens: 100,
      messages,
    })
    const kinds: string[] = []
    let text = ''
    let thoughts = ''
    stream.on('streamEvent', ({ type }) => void kinds.push(type))
    stream.on('text', (piece) => void (text += piece))
    stream.on('thinking', (piece) => void (thoughts += piece))
    const final = await stream.finalMessage()
    expect({ text, thoughts }).toEqual({ text: TEXT, thoughts: THOUGHT })
    expect(final.content).toMatchObject([
      {
        type: 'thinking',
        thinking: THOUGHT,
        signature: mode === 'native' ? 'c2ln' : UNSIGNED_THOUGHT_ENVELOPE,
      },
      { type: 'text', text: TEXT },
    ])
    expect(final.stop_reason).toBe('end_turn')
    expect(final.usage).toMatchObject(COUNTS)
    expect(kinds.filter((kind) => kind === 'message_start')).toHaveLength(1)
    expect(kinds.at(-1)).toBe('message_stop')
  })

  test('the Anthropic client gets text and tool uses in order through its stream helper', async () => {
    const stream = client.messages.stream({
      model: scriptModel(mode, 'calls', true),
      max_tokens: 100,
      messages,
      tools: [weather],
    })
    const blocks: unknown[] = []
    stream.on('contentBlock', (block) => void blocks.push(block))
    const final = await stream.finalMessage()
    const expected = [
      { type: 'text', text: 'Let me look.' },
      ...CALLS.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input: JSON.parse(input) })),
    ]
    expect(blocks).toMatchObject(expected)
    expect(final.content).toMatchObject(expected)
    expect(final.stop_reason).toBe('tool_use')
  })

  test.each([false, true])(
    "the Anthropic client's tool runner calls its tools until the model gives a final answer (stream: %j)",
    async (stream) => {
      const model = scriptModel(mode, 'calls', stream)
      const behaviours =
        mode === 'native'
          ? [
              stream ? streamedMessage(CALLS) : wholeMessage(CALLS),
              stream ? streamedMessage([{ text: TEXT }]) : wholeMessage([{ text: TEXT }]),
            ]
          : [
              stream ? streamedChat({ calls: CALLS }) : wholeChat({ calls: CALLS }),
              stream ? streamedChat({ text: TEXT }) : wholeChat({ text: TEXT }),
            ]
      fixture.upstream.script(LANE[mode], ...behaviours)
      const asked: string[] = []
      const runner = client.beta.messages.toolRunner({
        model,
        max_tokens: 100,
        messages,
        stream,
        tools: [
          betaTool({
            name: 'weather',
            description: 'The weather in a town',
            inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
            run: ({ city }) => {
              asked.push(city)
              return `sunny in ${city}`
            },
          }),
        ],
      })
      const final = await runner.runUntilDone()
      expect(final.content).toMatchObject([{ type: 'text', text: TEXT }])
      expect(asked).toEqual(['Bern', 'Basel'])
      const second = JSON.parse(fixture.upstream.received(LANE[mode])[1]?.text ?? '')
      const results = mode === 'converted' ? second.messages.slice(-2) : second.messages.at(-1).content
      expect(results).toMatchObject(
        CALLS.map(({ id }, i) =>
          mode === 'converted'
            ? { role: 'tool', tool_call_id: id, content: `sunny in ${asked[i]}` }
            : { type: 'tool_result', tool_use_id: id, content: `sunny in ${asked[i]}` },
        ),
      )
    },
  )

  test("the Anthropic client raises APIError when the upstream's stream breaks off in the middle", async () => {
    const model = scriptModel(mode, 'text', true)
    const whole = mode === 'converted' ? streamedChat({ text: TEXT }) : streamedMessage([{ text: TEXT }])
    const cut = mode === 'converted' ? 2 : 4
    fixture.upstream.script(model, { ...whole, frames: whole.frames?.slice(0, cut) ?? [], ending: 'reset' })
    const stream = await client.messages.create({ model, max_tokens: 100, messages, stream: true })
    const seen: string[] = []
    const read = async (): Promise<void> => {
      for await (const { type } of stream) seen.push(type)
    }
    await expect(read()).rejects.toBeInstanceOf(Anthropic.APIError)
    expect(seen).toContain('content_block_delta')
    expect(seen).not.toContain('message_stop')
  })

  test("the Anthropic client gets an upstream's 429 as an Anthropic error envelope, with a request id", async () => {
    const model = scriptModel(mode, 'text', false)
    const body =
      mode === 'native'
        ? messagesErrorText('rate_limit_error', 'slow down')
        : errorBody('slow down', 'requests', 'rate')
    fixture.upstream.script(model, { kind: 'status', status: 429, body, headers: { 'retry-after': '7' } })
    const error = await client.messages
      .create({ model, max_tokens: 100, messages })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Anthropic.RateLimitError)
    const { error: envelope, headers } = error as InstanceType<typeof Anthropic.RateLimitError>
    expect(envelope).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'slow down' },
      request_id: mode === 'native' ? 'req_upstream' : expect.any(String),
    })
    expect(headers?.get('retry-after')).toBe('7')
  })
})

describe('error classes of the Anthropic client', () => {
  const create = (by: Anthropic = client, fields: object = {}): Promise<unknown> =>
    by.messages
      .create({ model: MODEL.messages, max_tokens: 10, messages, ...fields })
      .catch((thrown: unknown) => thrown)
  const envelope = {
    type: 'error',
    error: { type: 'gateway_error', message: expect.stringMatching(/\(request id: \S+\)$/) },
    request_id: expect.any(String),
  }

  test('the Anthropic client raises AuthenticationError for an unknown key', async () => {
    const error = await create(clientWith('sk-nobody'))
    expect(error).toBeInstanceOf(Anthropic.AuthenticationError)
    expect(error).toMatchObject({ error: envelope })
  })
  test('the Anthropic client raises BadRequestError with the name of the field for an invalid max_tokens', async () => {
    const error = await create(client, { max_tokens: -1 })
    expect(error).toBeInstanceOf(Anthropic.BadRequestError)
    expect(error).toMatchObject({ error: envelope, message: expect.stringContaining('max_tokens') })
  })
  test('the Anthropic client raises InternalServerError for an unknown model, and when the upstream drops the connection', async () => {
    expect(await create(client, { model: 'no-such-model' })).toMatchObject({
      status: 503,
      error: { error: { type: 'gateway_error', code: 'model_not_found' } },
    })
    fixture.upstream.script(MODEL.messages, { kind: 'drop' })
    expect(await create()).toBeInstanceOf(Anthropic.InternalServerError)
  })
})
