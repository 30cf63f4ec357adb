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
const [BEGIN, , HI, END, DELTA] = MESSAGE_FRAMES as [object, object, object, object, object]
const MESSAGE_STOP = { type: 'message_stop' }
const RESPONSE = { id: 'resp_1', object: 'response', created_at: 7, model: 'm', status: 'completed' }
const RESPONSE_FRAMES = [
  { type: 'response.created', response: { ...RESPONSE, status: 'in_progress', output: [] } },
  { type: 'response.vendor_event', vendor: 1 },
  { type: 'response.completed', response: { ...RESPONSE, output: [], usage: null } },
]

const [CREATED, VENDOR_EVENT, COMPLETED] = RESPONSE_FRAMES as [object, object, object]

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
  return (await request(protocol, isStream, isPlain)).text
}

async function request(protocol: Protocol, isStream: boolean, isPlain = false) {
  const model = isPlain ? `plain-${protocol}` : protocol
  const content = 'Hi'
  const body =
    protocol === 'gemini'
      ? { contents: [{ role: 'user', parts: [{ text: content }] }] }
      : protocol === 'responses'
        ? { input: content, stream: isStream }
        : { messages: [{ role: 'user', content }], max_tokens: 100, stream: isStream }
  const path = PATHS[protocol]
    .replace('MODEL', model)
    .replace('streamGenerateContent?alt=sse', isStream ? '$&' : 'generateContent')
  const answer = await fixture.chat('ann', protocol === 'gemini' ? body : { model, ...body }, { path })
  expect(answer.status, answer.text).toBe(200)
  return answer
}

const DIGITS = '12345678901234567891'
const PARTS = [
  { type: 'text', text: 'He' },
  { type: 'text', text: 'llo' },
]
const functionCall = (args: unknown): object => ({
  candidates: [
    { content: { role: 'model', parts: [{ functionCall: { name: 'f', args } }] }, finishReason: 'STOP' },
  ],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 },
})
const geminiText = (content: unknown): object => ({
  candidates: [{ content, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 },
})
const message = (content: unknown): object => ({
  ...MESSAGE,
  content,
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
})
const blockDelta = (delta: object, index: number | undefined = 0, more: object = {}): object => ({
  type: 'content_block_delta',
  index,
  delta,
  ...more,
})
const response = (...output: unknown[]): object => ({ ...RESPONSE, output, usage: null })
const chatWhole = (said: object): object => ({
  id: 'x',
  choices: [{ index: 0, message: { role: 'assistant', ...said }, finish_reason: 'stop' }],
  usage: USAGE,
})
const calls = (args: unknown): object => ({
  tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: args } }],
})
const responseItem = (type: string, more: object): object => ({
  type: `response.output_item.${type}`,
  output_index: 0,
  item: { id: 'i', ...more },
})

/** Values of a wrong type: a whole answer, an event of a stream, and what both contain after the repair. */
const WRONG_TYPES: readonly (readonly [Protocol, string, whole: object, frame: object, said: string])[] = [
  ['chat', 'a list', chatWhole({ content: PARTS }), chunk({ content: PARTS }), '"content":"Hello"'],
  ['chat', 'a part', chatWhole({ content: PARTS[0] }), chunk({ content: PARTS[0] }), '"content":"He"'],
  [
    'chat',
    'arguments',
    chatWhole(calls({ n: 1 })),
    chunk(calls({ n: 1 })),
    String.raw`"arguments":"{\"n\":1}"`,
  ],
  [
    'messages',
    'a list',
    message([{ type: 'text', text: PARTS }]),
    blockDelta({ type: 'text_delta', text: PARTS }),
    '"text":"Hello"',
  ],
  [
    'messages',
    'a text',
    message('Hello'),
    blockDelta({ type: 'text_delta', text: { text: 'Hello' } }),
    '"text":"Hello"',
  ],
  [
    'messages',
    'an input',
    message([{ type: 'tool_use', id: 'a', name: 'f', input: '{"n":{}}' }]),
    blockDelta({ type: 'input_json_delta', partial_json: { n: {} } }),
    'n',
  ],
  [
    'responses',
    'a text',
    response({ type: 'message', role: 'assistant', content: 'Hello' }),
    responseItem('done', { type: 'message', role: 'assistant', content: 'Hello' }),
    '"text":"Hello"',
  ],
  [
    'responses',
    'arguments',
    response({ type: 'function_call', call_id: 'a', name: 'f', arguments: { n: 1 } }),
    responseItem('done', { type: 'function_call', call_id: 'a', name: 'f', arguments: { n: 1 } }),
    String.raw`"arguments":"{\"n\":1}"`,
  ],
  ['gemini', 'a text', geminiText('Hello'), geminiText('Hello'), '"parts":[{"text":"Hello"}]'],
  [
    'gemini',
    'a list',
    geminiText({ parts: [{ text: PARTS }] }),
    geminiText({ parts: [{ text: PARTS }] }),
    '"text":"Hello"',
  ],
  ['gemini', 'a part', geminiText({ parts: PARTS[0] }), geminiText({ parts: PARTS[0] }), '"parts":[{'],
  [
    'gemini',
    'arguments',
    functionCall(`{"n":${DIGITS}}`),
    functionCall(`{"n":${DIGITS}}`),
    `"args":{"n":${DIGITS}}`,
  ],
]

/** A stream with this event. */
function around(protocol: Protocol, event: object): readonly object[] {
  switch (protocol) {
    case 'chat':
      return [chunk({ role: 'assistant' }), event, chunk({}, {}, 'stop')]
    case 'messages': {
      const isCall = JSON.stringify(event).includes('input_json_delta')
      const content_block = isCall ? TOOL_USE('a') : { type: 'text', text: '' }
      const begin = { type: 'content_block_start', index: 0, content_block }
      return [BEGIN, begin, event, END, DELTA, MESSAGE_STOP]
    }
    case 'responses': {
      const { item } = event as { item: object }
      const added = { ...responseItem('added', { ...item, content: [], arguments: '' }) }
      return [CREATED, added, event, COMPLETED]
    }
    case 'gemini':
      return [geminiText({ role: 'model', parts: [{ text: 'Hi' }] }), event]
  }
}

const TOOL_USE = (id: string): object => ({ type: 'tool_use', id, name: 'f', input: {} })
const CALL = (id: string): object => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name: 'f',
  arguments: '',
})
const PIECE = (id: string): object => ({
  type: 'response.function_call_arguments.delta',
  item_id: id,
  output_index: 0,
  delta: '{}',
})
const ANNOTATION = (url: string): object => ({
  type: 'response.output_text.annotation.added',
  output_index: 0,
  content_index: 0,
  annotation: { type: 'url_citation', url, title: 't', start_index: 0, end_index: 2 },
})
const begins = (index: number, content_block: object, more: object = {}): object => ({
  type: 'content_block_start',
  index,
  content_block,
  ...more,
})
const ends = (index: number): object => ({ type: 'content_block_stop', index })
const INPUT = { type: 'input_json_delta', partial_json: '{}' }
const PING = { type: 'ping', vendor: 1 }

/** Type and number of an event. */
const outline = (event: object): string => {
  const { type = '', index, output_index: item } = event as Record<string, string | number | undefined>
  return `${String(type).replace(/^(?:content_block_|response\.)/, '')} ${index ?? item ?? ''}`.trim()
}
const outlineOf = (text: string): string[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => outline(JSON.parse(data)))

const MESSAGE_END = ['message_delta', 'message_stop']
/** Streams whose events are not in order, and the events after the repair. */
const DISORDERED: readonly (readonly [string, Protocol, readonly object[], readonly string[]])[] = [
  [
    'calls of messages under one index',
    'messages',
    [
      BEGIN,
      begins(0, TOOL_USE('a'), { vendor: 1 }),
      blockDelta(INPUT),
      ends(0),
      begins(0, TOOL_USE('b'), { vendor: 2 }),
      blockDelta(INPUT),
      ends(0),
      DELTA,
      MESSAGE_STOP,
    ],
    ['message_start', 'start 0', 'delta 0', 'stop 0', 'start 1', 'delta 1', 'stop 1', ...MESSAGE_END],
  ],
  [
    'blocks of messages that do not end, after one without a text',
    'messages',
    [
      BEGIN,
      begins(0, { type: 'text', text: '' }, { vendor: 2 }),
      PING,
      begins(0, TOOL_USE('a')),
      blockDelta(INPUT),
      begins(0, TOOL_USE('b')),
      blockDelta(INPUT),
      DELTA,
      MESSAGE_STOP,
    ],
    [
      'message_start',
      'start 0',
      'ping',
      'stop 0',
      'start 1',
      'delta 1',
      'stop 1',
      'start 2',
      'delta 2',
      'stop 2',
      ...MESSAGE_END,
    ],
  ],
  [
    'a block of messages that does not begin, and no reason',
    'messages',
    [BEGIN, { ...HI, vendor: 2 }, PING, HI, ends(0), MESSAGE_STOP],
    ['message_start', 'start 0', 'delta 0', 'ping', 'delta 0', 'stop 0', ...MESSAGE_END],
  ],
  [
    'calls of responses under one index',
    'responses',
    [
      CREATED,
      { ...responseItem('added', CALL('a')), vendor: 1 },
      PIECE('fc_a'),
      { ...responseItem('done', CALL('a')) },
      { ...responseItem('added', CALL('b')), vendor: 2 },
      PIECE('fc_b'),
      { ...responseItem('done', CALL('b')) },
      COMPLETED,
    ],
    [
      'created',
      'output_item.added 0',
      'function_call_arguments.delta 0',
      'output_item.done 0',
      'output_item.added 1',
      'function_call_arguments.delta 1',
      'function_call_arguments.done 1',
      'output_item.done 1',
      'completed',
    ],
  ],
  [
    'an item of responses that neither begins nor ends',
    'responses',
    [
      CREATED,
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hi', vendor: 2 },
      VENDOR_EVENT,
      COMPLETED,
    ],
    [
      'created',
      'output_item.added 0',
      'content_part.added 0',
      'output_text.delta 0',
      'vendor_event',
      'output_text.done 0',
      'content_part.done 0',
      'output_item.done 0',
      'completed',
    ],
  ],
  [
    'a text of responses with two sources that does not begin',
    'responses',
    [
      { ...CREATED, vendor: 1 },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hi', vendor: 2 },
      ANNOTATION('http://a.test/'),
      ANNOTATION('http://b.test/'),
      COMPLETED,
    ],
    [
      'created',
      'output_item.added 0',
      'content_part.added 0',
      'output_text.delta 0',
      'output_text.annotation.added 0',
      'output_text.annotation.added 0',
      'output_text.done 0',
      'content_part.done 0',
      'output_item.done 0',
      'completed',
    ],
  ],
]

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

  test('pictures of a chat answer stay where the provider put them, streamed and whole', async () => {
    const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,QQ==' } }]
    const stream = frames(chunk({ role: 'assistant', content: '' }), chunk({ content: '', images }))
    const text = await ask('chat', { stream: stream + frames(chunk({}, {}, 'stop')) })
    expect(text).toContain(JSON.stringify(images))
    expect(text).not.toContain('![image]')
    const message = { role: 'assistant', content: null, images }
    const whole = await ask('chat', {
      whole: { ...chunk({}), object: 'chat.completion', choices: [{ index: 0, message }] },
    })
    expect(whole).toContain(JSON.stringify(images))
    expect(whole).not.toContain('![image]')
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

  test.each(WRONG_TYPES)(
    'values of %s answers get the type that the protocol defines: %s',
    async (protocol, _, whole, frame, said) => {
      expect(await ask(protocol, { whole })).toContain(said)
      expect(await ask(protocol, { stream: frames(...around(protocol, frame)) })).toContain(said)
    },
  )

  test.each(DISORDERED)('the events of a stream are in order: %s', async (_, protocol, given, expected) => {
    const text = await ask(protocol, { stream: frames(...given) })
    expect(outlineOf(text)).toEqual(expected)
    for (const vendor of ['"vendor":1', '"vendor":2']) expect(text).toContain(vendor)
    const plain = await ask(protocol, { stream: frames(...given) }, true)
    expect(outlineOf(plain)).toEqual(given.map(outline))
  })

  test.each(WRONG_TYPES)(
    'numbers of %s answers keep all their digits: %s',
    async (protocol, _, whole, frame) => {
      const precise = (given: object): string => JSON.stringify(given).replace(/\}$/, `,"vendor":${DIGITS}}`)
      fixture.upstream.script(protocol, { kind: 'whole', body: precise(whole) })
      expect((await request(protocol, false)).text).toContain(`"vendor":${DIGITS}`)
      const stream = around(protocol, frame)
        .map((one) => `data: ${precise(one)}\n\n`)
        .join('')
      expect(await ask(protocol, { stream })).toContain(`"vendor":${DIGITS}`)
    },
  )

  test('an error in a stream is passed on as it came', async () => {
    const error = { error: { message: 'busy', type: 'server_error' } }
    const text = await ask('chat', { stream: frames(chunk({ content: 'Hello' }), error) })
    expect(text).toContain('"content":"Hello"')
    expect(text).toContain(JSON.stringify(error))
  })
})

test('repair keeps a reason for the end that another protocol defines, except in chat streams', async () => {
  const choice = { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'end_turn' }
  const chat = { id: 'c', object: 'chat.completion', created: 7, model: 'm', choices: [choice], usage: USAGE }
  expect(JSON.parse(await ask('chat', { whole: chat })).choices[0].finish_reason).toBe('end_turn')
  const message = {
    ...MESSAGE,
    content: 'Hi',
    stop_reason: 'pause',
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  expect(JSON.parse(await ask('messages', { whole: message }))).toMatchObject({
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'pause',
  })
  const stream = frames(chunk({ content: 'Hi' }), chunk({}, { usage: USAGE }, 'end_turn')) + DONE
  expect(await ask('chat', { stream })).toContain('"finish_reason":"stop"')
})
