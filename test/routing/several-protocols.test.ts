import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

/** Models, each on one channel that speaks these protocols. */
const LISTS = {
  'chat+responses': ['chat', 'responses'],
  'chat+messages': ['chat', 'messages'],
  'responses+messages': ['responses', 'messages'],
  'all-three': ['chat', 'messages', 'responses'],
  'plain-responses': ['responses'],
  'chat+rerank': ['chat', 'rerank'],
}
type ListedModel = keyof typeof LISTS

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: {
      ...priced([...Object.keys(LISTS), 'both', 'urgent', 'x', 'x-thinking', 'named-thinking']),
      'gone-thinking': { successor: 'urgent' },
    },
    channels: [
      ...Object.entries(LISTS).map(([name, protocol]) => channel(name, upstream.baseUrl(name), { protocol })),
      channel('one', upstream.baseUrl('one'), {
        models: ['both', 'urgent'],
        protocol: 'messages',
        weight: 1000,
      }),
      channel('two', upstream.baseUrl('two'), { models: ['both'], protocol: ['chat', 'responses'] }),
      channel('less', upstream.baseUrl('less'), {
        models: ['urgent'],
        protocol: ['responses'],
        priority: -1,
      }),
      channel('suffixed', upstream.baseUrl('suffixed'), { models: ['x-thinking'] }),
      channel('plain', upstream.baseUrl('plain'), { models: ['x'], protocol: 'messages', priority: 1 }),
      channel('named', upstream.baseUrl('named'), { models: ['named-thinking'], protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())
beforeEach(() => {
  for (const name of [...Object.keys(LISTS), 'one', 'two', 'less', 'suffixed', 'plain', 'named'])
    answerAll(name)
})

const messages = [{ role: 'user', content: 'hi' }]
const CLIENTS = {
  chat: { path: '/v1/chat/completions', body: { messages } },
  messages: { path: '/v1/messages', body: { messages, max_tokens: 9_000 } },
  responses: { path: '/v1/responses', body: { input: 'hi' } },
}
type Client = keyof typeof CLIENTS
const ENDPOINTS: Record<string, string> = {
  '/v1/chat/completions': 'chat',
  '/v1/messages': 'messages',
  '/v1/responses': 'responses',
}

/** Scripts an upstream that answers in the dialect of the request. */
function answerAll(name: string): void {
  const answers: Record<string, ReturnType<typeof wholeChat>> = {
    chat: wholeChat({ text: 'said' }),
    messages: wholeMessage([{ text: 'said' }]),
    responses: wholeResponse({ text: 'said' }),
  }
  fixture.upstream.decide(name, ({ path }) => answers[ENDPOINTS[path] ?? ''] ?? wholeChat({ text: '?' }))
}

const ask = (client: Client, model: string, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { model, ...CLIENTS[client].body, ...fields }, { path: CLIENTS[client].path })

/** The dialect of the channel's request. */
const asked = (name: string): string | undefined => ENDPOINTS[fixture.upstream.only(name).path]

describe('a channel that speaks several protocols', () => {
  test.each<[ListedModel, Client, string]>([
    ['chat+responses', 'chat', 'chat'],
    ['chat+responses', 'responses', 'responses'],
    ['chat+responses', 'messages', 'responses'],
    ['chat+messages', 'chat', 'chat'],
    ['chat+messages', 'messages', 'messages'],
    ['chat+messages', 'responses', 'messages'],
    ['responses+messages', 'chat', 'responses'],
    ['responses+messages', 'responses', 'responses'],
    ['responses+messages', 'messages', 'messages'],
    ['all-three', 'chat', 'chat'],
    ['all-three', 'messages', 'messages'],
    ['all-three', 'responses', 'responses'],
  ])(
    'the channel that speaks %s gets the request of a client of %s in the dialect %s',
    async (model, client, spoken) => {
      const answer = await ask(client, model)
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('said')
      expect(asked(model)).toBe(spoken)
    },
  )

  test('a channel that speaks chat and messages gets its key in the header that each of these protocols uses', async () => {
    await ask('chat', 'chat+messages')
    await ask('messages', 'chat+messages')
    const [chat, message] = fixture.upstream.received('chat+messages')
    expect(chat?.headers).toMatchObject({ authorization: 'Bearer upstream-key-of-chat+messages' })
    expect(chat?.headers).not.toHaveProperty('x-api-key')
    expect(message?.headers).toMatchObject({ 'x-api-key': 'upstream-key-of-chat+messages' })
    expect(message?.headers).not.toHaveProperty('authorization')
  })

  test('a chat call of a model name with the suffix -thinking is sent as a messages call to a channel that speaks both', async () => {
    const answer = await ask('chat', 'chat+messages-thinking', { max_tokens: 9_000 })
    expect(answer.status).toBe(200)
    expect(asked('chat+messages')).toBe('messages')
    expect(JSON.parse(fixture.upstream.only('chat+messages').text)).toMatchObject({
      model: 'chat+messages',
      thinking: { type: 'enabled' },
    })
  })

  test("a channel that speaks messages besides chat counts tokens with the upstream's count_tokens", async () => {
    fixture.upstream.script('chat+messages', { kind: 'whole', body: '{"input_tokens":5}' })
    const path = '/v1/messages/count_tokens'
    const answer = await fixture.chat('ann', { model: 'chat+messages', messages }, { path })
    expect(answer.json()).toEqual({ input_tokens: 5 })
    expect(fixture.upstream.only('chat+messages').path).toBe(path)
  })
})

describe('a model name with the suffix -thinking', () => {
  test('a chat call of a name with the suffix -thinking goes to the channel of that very name, before one of the plain name with a higher priority', async () => {
    expect((await ask('chat', 'x-thinking')).status).toBe(200)
    expect(JSON.parse(fixture.upstream.only('suffixed').text)).toMatchObject({ model: 'x-thinking' })
    expect(fixture.upstream.received('plain')).toEqual([])
  })

  test.each([
    ['messages', { max_tokens: 9_000, messages }, '/v1/messages'],
    ['responses', { input: 'hi' }, '/v1/responses'],
    ['gemini', { contents: [{ parts: [{ text: 'hi' }] }] }, '/v1beta/models/named-thinking:generateContent'],
  ])(
    'a messages channel gets a model name that ends in -thinking unchanged from a client of %s, and no thinking',
    async (_, body, path) => {
      const answer = await fixture.chat('ann', { model: 'named-thinking', ...body }, { path })
      expect(answer.status, answer.text).toBe(200)
      const sent = JSON.parse(fixture.upstream.only('named').text)
      expect(sent).toMatchObject({ model: 'named-thinking' })
      expect(sent).not.toHaveProperty('thinking')
    },
  )

  test('for a client of responses, a name with the suffix -thinking has neither the channels of the plain name nor a suffix that its successor gets', async () => {
    expect((await ask('responses', 'both-thinking')).status).toBe(503)
    expect((await ask('responses', 'gone-thinking')).status).toBe(200)
    expect(JSON.parse(fixture.upstream.only('one').text)).toMatchObject({ model: 'urgent' })
  })

  test.each(['chat', 'completions'])(
    'a call of %s sends a messages channel the plain name and thinking, also where the channel has the name with the suffix',
    async (path) => {
      const body = path === 'chat' ? { messages } : { prompt: 'hi' }
      const answer = await fixture.chat(
        'ann',
        { model: 'named-thinking', max_tokens: 9_000, ...body },
        { path: path === 'chat' ? '/v1/chat/completions' : '/v1/completions' },
      )
      expect(answer.status, answer.text).toBe(200)
      expect(JSON.parse(fixture.upstream.only('named').text)).toMatchObject({
        model: 'named',
        thinking: { type: 'enabled', budget_tokens: 7_200 },
      })
    },
  )
})

test('the model list names all endpoints through which clients can call a model, whichever protocol its channels speak', async () => {
  const answer = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/v1/models', key: 'ann' })
  const { data } = JSON.parse(answer.text)
  const entry = (id: string) => data.find((model: { id: string }) => model.id === id)
  const conversations = ['chat', 'messages', 'responses', 'gemini', 'completions']
  expect(entry('plain-responses')).toMatchObject({
    endpoints: conversations,
    supported_endpoint_types: ['compat'],
  })
  expect(entry('chat+messages')).toMatchObject({
    endpoints: conversations,
    supported_endpoint_types: ['vendor', 'compat'],
  })
  expect(entry('chat+rerank')).toMatchObject({ endpoints: [...conversations, 'rerank'] })
})

describe('the choice among channels of one model', () => {
  test("among channels of equal priority, one that speaks the client's dialect is preferred", async () => {
    for (let round = 0; round < 5; round++) {
      for (const client of ['chat', 'responses', 'messages'] as const) {
        for (const name of ['one', 'two']) answerAll(name)
        await ask(client, 'both')
        expect(asked(client === 'messages' ? 'one' : 'two')).toBe(client)
      }
    }
  })

  test("a channel of higher priority is chosen before one of lower priority that speaks the client's dialect", async () => {
    await ask('responses', 'urgent')
    expect(asked('one')).toBe('messages')
    expect(fixture.upstream.received('less')).toHaveLength(0)
  })

  test("when the first channel fails, the request is sent to the next channel in that channel's dialect", async () => {
    fixture.upstream.script('two', { kind: 'status', status: 500, body: '{}' })
    const answer = await ask('responses', 'both')
    expect(answer.status).toBe(200)
    expect(asked('two')).toBe('responses')
    expect(asked('one')).toBe('messages')
  })
})
