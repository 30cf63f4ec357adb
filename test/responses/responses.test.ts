import OpenAI, { RateLimitError } from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { checkResponsesStream } from '../conversion/responses-grammar.ts'
import {
  contentFrame,
  errorBody,
  roleFrame,
  type Behaviour,
  type Streamed,
  usageText,
} from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import {
  frames,
  responsesUsage,
  streamedResponse,
  upstreamNamed,
  wholeResponse,
} from '../fixtures/responses-behaviour.ts'

const PROTOCOLS = ['responses', 'chat', 'messages'] as const
type Protocol = (typeof PROTOCOLS)[number]

let fixture: Fixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([...PROTOCOLS, 'mapped', 'allowing']),
    channels: [
      ...PROTOCOLS.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
      channel('mapped', upstream.baseUrl('mapped'), {
        protocol: 'responses',
        model_mapping: { mapped: 'their-name' },
        disable_store: true,
      }),
      channel('allowing', upstream.baseUrl('allowing'), {
        protocol: 'responses',
        allow: ['service_tier', 'safety_identifier', 'include_obfuscation'],
      }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const PATH = { path: '/v1/responses' }
const TEXT = 'Hello there, friend.'
const CALLS = [{ id: 'call_1', name: 'weather', input: '{"city":"Bern"}' }]
const tools = [{ type: 'function' as const, name: 'weather', parameters: { type: 'object' }, strict: false }]
/** One hundred prompt tokens, 70 of them cached, and 7 output tokens. */
const CHARGE = 30 + 70 / 4 + 7 * 4

/** Scripts the upstream of a protocol to send a text, or tool calls. */
function scripted(protocol: Protocol, how: 'whole' | 'stream', calls = false): Behaviour {
  const content = calls ? { calls: CALLS } : { text: TEXT }
  const counts = { input_tokens: 30, cache_read_input_tokens: 70, output_tokens: 7 }
  switch (protocol) {
    case 'responses': {
      const said = { ...content, usage: responsesUsage(100, 7, 70) }
      return how === 'whole' ? wholeResponse(said) : streamedResponse(said)
    }
    case 'chat': {
      const said = { ...content, usage: usageText(100, 7, 70) }
      return how === 'whole' ? wholeChat(said) : streamedChat(said)
    }
    case 'messages': {
      const blocks = calls ? CALLS : [{ text: TEXT }]
      return how === 'whole' ? wholeMessage(blocks, { counts }) : streamedMessage(blocks, { counts })
    }
  }
}

/** The frames of the protocol's stream up to its first text. */
function begunStream(protocol: Protocol): readonly string[] {
  const { frames: all = [] } = scripted(protocol, 'stream') as Streamed
  return all.slice(0, all.findIndex((frame) => frame.includes('"Hel')) + 1)
}

function charged(id: unknown): UsageRow {
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(id))
  if (!row) throw new Error('there is no row')
  return row
}

const post = (model: string, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { model, input: 'hi', ...fields }, PATH)

// oxlint-disable-next-line typescript/no-explicit-any -- events of a stream
type Event = Record<string, any>

const eventsOf = (text: string): Event[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json))

describe.each(PROTOCOLS)('the official OpenAI client, with a channel that speaks %s', (protocol) => {
  test('the OpenAI client gets a whole response, which is charged by its usage', async () => {
    fixture.upstream.script(protocol, scripted(protocol, 'whole'))
    const { data: response, request_id: id } = await client.responses
      .create({ model: protocol, input: 'hi' })
      .withResponse()
    expect(response).toMatchObject({ object: 'response', status: 'completed', output_text: TEXT })
    expect(response.id).toMatch(/^resp_./)
    expect(response.usage).toMatchObject({
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 70 },
      output_tokens: 7,
      total_tokens: 107,
    })
    expect(charged(id).quota).toBe(Math.ceil(CHARGE))
  })

  test('the OpenAI client gets a stream, whose last event has the charged usage', async () => {
    fixture.upstream.script(protocol, scripted(protocol, 'stream'))
    const { data: stream, request_id: id } = await client.responses
      .create({ model: protocol, input: 'hi', stream: true })
      .withResponse()
    let text = ''
    const types: string[] = []
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === 'response.output_text.delta') text += event.delta
      if (event.type === 'response.completed') {
        expect(event.response.usage).toMatchObject({ input_tokens: 100, output_tokens: 7 })
        expect(event.response.output).toHaveLength(1)
      }
    }
    expect(text).toBe(TEXT)
    expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress'])
    expect(types.filter((type) => type === 'response.completed')).toHaveLength(1)
    expect(types.at(-1)).toBe('response.completed')
    expect(charged(id).quota).toBe(Math.ceil(CHARGE))
  })

  test.each(['whole', 'stream'] as const)(
    'the OpenAI client gets a tool call with its id, name and arguments from the responses endpoint, %s',
    async (how) => {
      fixture.upstream.script(protocol, scripted(protocol, how, true))
      const asked = { model: protocol, input: 'hi', tools }
      const { output } =
        how === 'whole'
          ? await client.responses.create(asked)
          : await client.responses.stream(asked).finalResponse()
      expect(output).toHaveLength(1)
      expect(output[0]).toMatchObject({
        type: 'function_call',
        call_id: 'call_1',
        name: 'weather',
        arguments: '{"city":"Bern"}',
      })
    },
  )

  test('the OpenAI client throws its RateLimitError when the upstream fails with 429', async () => {
    fixture.upstream.script(protocol, { kind: 'status', status: 429, body: errorBody('slow down') })
    const asking = client.responses.create({ model: protocol, input: 'hi' })
    await expect(asking).rejects.toBeInstanceOf(RateLimitError)
  })

  test('when the OpenAI client leaves, the upstream request is aborted, and the call is charged for what was sent', async () => {
    const begun = begunStream(protocol)
    const endless = [...begun, ...Array.from({ length: 5_000 }, () => begun.at(-1) ?? '')]
    fixture.upstream.script(protocol, { kind: 'stream', frames: endless, paceMs: 5, ending: 'stall' })
    const live = await fixture.live('ann', { model: protocol, input: 'hi', stream: true }, PATH)
    await live.until('output_text.delta')
    live.abort()
    await fixture.upstream.only(protocol).ended
    const id = live.headers['x-request-id']
    const row = await vi.waitFor(() => charged(id), 60_000)
    expect(row.reason).toBe('client_gone')
    expect(row.quota).toBeGreaterThan(0)
  })
})

describe('a stream that the upstream breaks off', () => {
  test.each(PROTOCOLS)(
    'a stream that breaks off ends in response.failed, with a channel that speaks %s',
    async (protocol) => {
      fixture.upstream.script(protocol, { kind: 'stream', frames: begunStream(protocol), ending: 'close' })
      const live = await fixture.live('ann', { model: protocol, input: 'hi', stream: true }, PATH)
      const { text, headers } = await live.end()
      const last = eventsOf(text).at(-1)
      expect(last).toMatchObject({
        type: 'response.failed',
        response: { object: 'response', status: 'failed', error: { code: 'server_error' } },
      })
      expect(last?.['response'].error.message).toContain(String(headers['x-request-id']))
      const numbers = eventsOf(text).map((event) => event['sequence_number'])
      expect(numbers).toEqual(numbers.map((_, index) => index))
      if (protocol !== 'responses') checkResponsesStream(text, false)
    },
  )

  test('a stream that breaks off inside a frame ends in response.failed without a gap in the sequence numbers', async () => {
    const all = [...begunStream('chat'), contentFrame('lo').replaceAll('\n', '\r')]
    fixture.upstream.script('chat', { kind: 'stream', frames: all, ending: 'no done' })
    const live = await fixture.live('ann', { model: 'chat', input: 'hi', stream: true }, PATH)
    checkResponsesStream((await live.end()).text, false)
  })

  test('a chat stream with an upstream error ends for a responses client in response.failed with that error', async () => {
    fixture.upstream.script('chat', {
      kind: 'stream',
      frames: [roleFrame(), contentFrame('Hi'), `data: ${errorBody('out of order', 'server_error')}\n\n`],
      ending: 'no done',
    })
    const live = await fixture.live('ann', { model: 'chat', input: 'hi', stream: true }, PATH)
    const { text } = await live.end()
    expect(eventsOf(text).at(-1)).toMatchObject({
      type: 'response.failed',
      response: { error: { code: 'server_error', message: 'out of order' } },
    })
  })
})

describe('responses clients on responses channels', () => {
  test('a whole response of a responses channel is passed on unchanged except for its id', async () => {
    const behaviour = wholeResponse({ text: TEXT })
    fixture.upstream.script('responses', behaviour)
    const body = '{"model":"responses",  "input":"hi","x_new":9007199254740993, "store":true}'
    const answer = await fixture.chat('ann', body, PATH)
    expect(upstreamNamed(answer.text)).toBe(behaviour.body)
    const sent = fixture.upstream.only('responses')
    expect(sent.text).toBe(body)
    expect(sent.path).toBe('/v1/responses')
    expect(sent.headers['authorization']).toBe('Bearer upstream-key-of-responses')
  })

  test('a stream of a responses channel is passed on unchanged except for the response id', async () => {
    const all = frames({ text: TEXT, calls: CALLS })
    fixture.upstream.script('responses', { kind: 'stream', frames: all, ending: 'no done', drip: true })
    const answer = await post('responses', { stream: true })
    expect(upstreamNamed(answer.text)).toBe(all.join(''))
  })

  test('a responses channel gets the mapped model name, and is told to store nothing where the channel forbids storing', async () => {
    fixture.upstream.script('mapped', wholeResponse({ text: TEXT }))
    await fixture.chat('ann', '{"model":"mapped", "input":"hi"}', PATH)
    expect(JSON.parse(fixture.upstream.only('mapped').text)).toEqual({
      model: 'their-name',
      input: 'hi',
      store: false,
    })
  })

  const gated = {
    service_tier: 'priority',
    safety_identifier: 'a',
    stream_options: { include_obfuscation: false },
  }
  test('request fields that a channel must allow are removed from calls to a responses channel that does not allow them', async () => {
    for (const name of ['responses', 'allowing']) fixture.upstream.script(name, wholeResponse({ text: TEXT }))
    await post('responses', gated)
    await post('allowing', gated)
    expect(JSON.parse(fixture.upstream.only('responses').text)).toEqual({ model: 'responses', input: 'hi' })
    expect(JSON.parse(fixture.upstream.only('allowing').text)).toMatchObject(gated)
  })
})

describe('a channel that speaks responses', () => {
  test('a responses channel answers chat and messages clients, and stores nothing for them', async () => {
    fixture.upstream.script('responses', wholeResponse({ text: TEXT }))
    const messages = [{ role: 'user', content: 'hi' }]
    const chat = await fixture.chat('ann', { model: 'responses', messages })
    expect(chat.json().choices[0]?.message.content).toBe(TEXT)
    expect(JSON.parse(fixture.upstream.only('responses').text)).toMatchObject({ store: false })
    const message = await fixture.chat(
      'ann',
      { model: 'responses', max_tokens: 100, messages },
      { path: '/v1/messages' },
    )
    expect(JSON.parse(message.text).content).toMatchObject([{ type: 'text', text: TEXT }])
    expect(charged(chat.headers['x-request-id']).quota).toBe(10 + 5 * 4)
  })

  test('a chat call with n above 1 is a 400 if its channel speaks the responses API', async () => {
    fixture.upstream.script('responses', wholeResponse({ text: TEXT }))
    const answer = await fixture.chat('ann', {
      model: 'responses',
      n: 2,
      messages: [{ role: 'user', content: 'hi' }],
    })
    expect(answer.status).toBe(400)
    expect(fixture.upstream.received('responses')).toHaveLength(0)
  })
})
