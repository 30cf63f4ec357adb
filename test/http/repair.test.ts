import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

// The law of `docs/configuration.md: Repair`.

const PROTOCOLS = ['chat', 'messages', 'responses', 'gemini'] as const
type Protocol = (typeof PROTOCOLS)[number]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(PROTOCOLS.flatMap((protocol) => [protocol, `plain-${protocol}`])),
    channels: PROTOCOLS.flatMap((protocol) => [
      channel(protocol, upstream.baseUrl(protocol), { protocol, repair: true }),
      channel(`plain-${protocol}`, upstream.baseUrl(protocol), { protocol }),
    ]),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const frames = (...data: readonly object[]): string =>
  data.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')
const chunk = (delta: object, more: object = {}, finish: string | null = null): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 7,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const call = (id: string, name: string, args: string): object => ({
  tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: args } }],
})
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const DONE = 'data: [DONE]\n\n'

const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' }
const MESSAGE_FRAMES = [
  {
    type: 'message_start',
    message: { ...MESSAGE, content: [], usage: { input_tokens: 10, output_tokens: 0 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' }, vendor: 1 },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
]
const MESSAGE_STOP = { type: 'message_stop' }
const RESPONSE = { id: 'resp_1', object: 'response', created_at: 7, model: 'm', status: 'completed' }
const RESPONSE_FRAMES = [
  { type: 'response.created', response: { ...RESPONSE, status: 'in_progress', output: [] } },
  { type: 'response.vendor_event', vendor: 1 },
  { type: 'response.completed', response: { ...RESPONSE, output: [], usage: null } },
]

const PATHS: Readonly<Record<Protocol, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  gemini: '/v1beta/models/MODEL:streamGenerateContent?alt=sse',
}

async function ask(protocol: Protocol, upstream: { stream: string } | { whole: object }, isPlain = false) {
  const isStream = 'stream' in upstream
  fixture.upstream.script(
    protocol,
    isStream
      ? { kind: 'stream', frames: [upstream.stream], ending: 'close' }
      : { kind: 'whole', body: JSON.stringify(upstream.whole) },
  )
  const model = isPlain ? `plain-${protocol}` : protocol
  const content = 'Hi'
  const body =
    protocol === 'gemini'
      ? { contents: [{ role: 'user', parts: [{ text: content }] }] }
      : protocol === 'responses'
        ? { input: content, stream: isStream }
        : { messages: [{ role: 'user', content }], max_tokens: 100, stream: isStream }
  const path = PATHS[protocol].replace('MODEL', model)
  const answer = await fixture.chat('ann', protocol === 'gemini' ? body : { model, ...body }, { path })
  expect(answer.status, answer.text).toBe(200)
  return answer.text
}

describe('a channel with repair', () => {
  test('parallel calls under one index get their own, and members that the codec does not know stay', async () => {
    const first = chunk(call('a', 'f', '{"x":1}'), { timings: { n: 1 } })
    const stream =
      frames(
        chunk({ role: 'assistant' }),
        first,
        chunk(call('b', 'g', '{"y":2}')),
        chunk({}, {}, 'tool_calls'),
      ) +
      frames({ ...chunk({}), choices: [], usage: USAGE, vendor: 'v' }) +
      DONE
    const text = await ask('chat', { stream })
    expect([...text.matchAll(/"index":(\d),"id":"(.)"/g)].map(([, index, id]) => [index, id])).toEqual([
      ['0', 'a'],
      ['1', 'b'],
    ])
    expect(text.match(/"timings":\{"n":1\}/g)).toHaveLength(1)
    expect(text).toContain('"vendor":"v"')
    expect(text).toContain('"finish_reason":"tool_calls"')
    expect(text.endsWith(DONE)).toBe(true)
    expect(await ask('chat', { stream }, true)).not.toMatch(/"index":1,"id":"b"/)
  })

  test('a chat content that is a list becomes a text, streamed and whole', async () => {
    const content = [{ type: 'text', text: 'Hello' }]
    const stream = frames(chunk({ role: 'assistant' }), chunk({ content }), chunk({}, {}, 'stop')) + DONE
    const streamed = await ask('chat', { stream })
    expect(streamed).toContain('"content":"Hello"')
    expect(streamed).not.toContain('"content":[')
    const message = { role: 'assistant', content, vendor: 1 }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const whole = JSON.parse(await ask('chat', { whole: { id: 'x', choices, usage: USAGE, vendor: 2 } }))
    expect(whole).toMatchObject({
      id: 'x',
      vendor: 2,
      choices: [{ message: { content: 'Hello', vendor: 1 }, finish_reason: 'stop' }],
    })
  })

  test('a chat stream without [DONE] and a messages stream without its last event get them', async () => {
    const stream = frames(chunk({ content: 'Hello' }), chunk({}, {}, 'stop'))
    expect((await ask('chat', { stream })).endsWith(DONE)).toBe(true)
    const text = await ask('messages', { stream: frames(...MESSAGE_FRAMES) })
    expect([...text.matchAll(/^event: (\S+)/gm)].map(([, name]) => name)).toEqual([
      ...MESSAGE_FRAMES.map(({ type }) => type),
      'message_stop',
    ])
  })

  test.each([
    ['messages', [...MESSAGE_FRAMES, MESSAGE_STOP]],
    ['responses', RESPONSE_FRAMES],
  ] as const)(
    'the events of a %s stream without names get them, and stay as they are',
    async (protocol, given) => {
      const text = await ask(protocol, { stream: frames(...given) })
      expect([...text.matchAll(/^event: (\S+)/gm)].map(([, name]) => name)).toEqual(
        given.map(({ type }) => type),
      )
      expect(text).toContain('"vendor":1')
      expect(await ask(protocol, { stream: frames(...given) }, true)).not.toContain('event:')
    },
  )

  test('the official clients read what they could not read before', async () => {
    const openai = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
    fixture.upstream.script('chat', {
      kind: 'whole',
      body: JSON.stringify({
        id: 'x',
        choices: [{ index: 0, message: { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] } }],
        usage: USAGE,
      }),
    })
    const { choices } = await openai.chat.completions.create({
      model: 'chat',
      messages: [{ role: 'user', content: 'Hi' }],
    })
    expect(choices[0]).toMatchObject({ message: { content: 'Hi' }, finish_reason: 'stop' })
    const anthropic = new Anthropic({ apiKey: 'sk-ann', baseURL: fixture.gateway.url, maxRetries: 0 })
    fixture.upstream.script('messages', {
      kind: 'stream',
      frames: [frames(...MESSAGE_FRAMES, MESSAGE_STOP)],
      ending: 'close',
    })
    const message = await anthropic.messages
      .stream({ model: 'messages', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] })
      .finalMessage()
    expect(message).toMatchObject({ content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn' })
  })

  test('sound answers keep their bytes', async () => {
    const candidate = { content: { parts: [{ text: 'Hi' }], role: 'model' }, finishReason: 'STOP', index: 0 }
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 }
    const gemini = frames({ candidates: [candidate], usageMetadata, vendor: 1 })
    expect(await ask('gemini', { stream: gemini })).toBe(gemini)
    const whole = {
      ...MESSAGE,
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
      vendor: 1.0,
    }
    const sound = { ...whole, usage: { input_tokens: 1, output_tokens: 1 } }
    expect(await ask('messages', { whole: sound })).toBe(JSON.stringify(sound))
  })

  test('an error in a stream is passed on as it came', async () => {
    const error = { error: { message: 'busy', type: 'server_error' } }
    const text = await ask('chat', { stream: frames(chunk({ content: 'Hello' }), error) })
    expect(text).toContain('"content":"Hello"')
    expect(text).toContain(JSON.stringify(error))
  })
})
