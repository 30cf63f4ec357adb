import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { PROXY_PASSWORD, PROXY_USER, type ProxyServer, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

const FIELDS = {
  metadata: { team: 'a' },
  user: 'u1',
  prompt_cache_key: 'k1',
  prompt_cache_retention: '24h',
  verbosity: 'low',
  store: true,
}
type Name = keyof typeof FIELDS
const NAMES = Object.keys(FIELDS) as Name[]

/** Models that accept thoughts in the history, and other models. */
const THINKERS = [
  'deepseek-chat',
  'vendor/qwen3-32b',
  'QwQ-32B',
  'kimi-k2',
  'glm-4.6',
  'MiniMax-M2',
  'deployed-glm',
]
const OTHERS = ['gpt-4o', 'mistral-large', 'llama-3.3-70b', 'english-1', 'gpt-of-deepseek']
const STATED = { 'stated-thinker': true, 'deepseek-stated': false }

let fixture: Fixture
let proxy: ProxyServer
beforeAll(async () => {
  const routes = new Map<string, number>()
  proxy = await startHttpProxy(routes)
  fixture = await startFixture((upstream) => {
    routes.set('openrouter.ai:80', Number(new URL(upstream.baseUrl('x')).port))
    const through = `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`
    const model = { vendor: 'acme', price: PLAIN_PRICE }
    const names = [
      'other',
      'gpt-4o',
      'gpt-5-deployed',
      'routed',
      'responses',
      ...NAMES.map((name) => `allows-${name}`),
    ]
    return {
      options: { retries: 0 },
      models: {
        ...Object.fromEntries([...names, ...THINKERS, ...OTHERS].map((name) => [name, model])),
        ...Object.fromEntries(
          Object.entries(STATED).map(([name, takes]) => [name, { ...model, takes_thoughts: takes }]),
        ),
      },
      channels: [
        channel('other', upstream.baseUrl('chat')),
        channel('gpt', upstream.baseUrl('chat'), {
          models: ['gpt-4o', 'gpt-5-deployed'],
          model_mapping: { 'gpt-5-deployed': 'deployment-7' },
        }),
        channel('routed', 'http://openrouter.ai/chat/v1', { proxy: through }),
        channel('responses', upstream.baseUrl('responses'), { protocol: 'responses' }),
        ...NAMES.map((name) => channel(`allows-${name}`, upstream.baseUrl('chat'), { allow: [name] })),
        channel('thoughts', upstream.baseUrl('chat'), {
          models: [...THINKERS, ...OTHERS.filter((name) => name !== 'gpt-4o'), ...Object.keys(STATED)],
          model_mapping: { 'deployed-glm': 'deployment-8', 'gpt-of-deepseek': 'gpt-4o' },
        }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  await proxy?.close()
})

/** The request that reached the chat upstream, and the names of the fields left out. */
async function asked(path: string, body: object): Promise<{ sent: Record<string, unknown>; left: string[] }> {
  fixture.upstream.script('chat', wholeChat({ text: 'said' }))
  const answer: FullResponse = await fixture.chat('ann', body, { path })
  expect(answer.status, answer.text).toBe(200)
  const left = String(answer.headers['x-gateway-dropped'] ?? '')
  return {
    sent: JSON.parse(fixture.upstream.only('chat').text) as Record<string, unknown>,
    left: left === '' ? [] : left.split(', '),
  }
}

function fromResponses(model: string): Promise<{ sent: Record<string, unknown>; left: string[] }> {
  const { verbosity, ...others } = FIELDS
  return asked('/v1/responses', { model, input: 'hi', ...others, text: { verbosity } })
}

describe('shared fields of a converted request', () => {
  test.each([
    ["a channel of OpenAI's models", 'gpt-4o'],
    ["a deployment of OpenAI's models under a name of its own", 'gpt-5-deployed'],
    ['openrouter.ai', 'routed'],
  ])('fields that chat and responses share, such as store and metadata, are sent to %s', async (_, model) => {
    const { sent, left } = await fromResponses(model)
    expect(sent).toMatchObject(FIELDS)
    expect(left).toEqual([])
  })

  test("fields such as store and metadata are dropped and listed for chat channels that do not serve OpenAI's models", async () => {
    const { sent, left } = await fromResponses('other')
    expect(Object.keys(sent).filter((name) => name in FIELDS)).toEqual([])
    expect(left.toSorted()).toEqual(NAMES.toSorted())
  })

  test.each(NAMES)(
    'a field that chat and responses share is sent to a chat channel whose option allow names it: %s',
    async (name) => {
      const { sent, left } = await fromResponses(`allows-${name}`)
      expect(Object.keys(sent).filter((one) => one in FIELDS)).toEqual([name])
      expect(sent[name]).toEqual(FIELDS[name])
      expect(left.toSorted()).toEqual(NAMES.filter((one) => one !== name).toSorted())
    },
  )

  test.each([true, false])(
    'fields that chat and responses share are sent to responses channels under the names of that dialect, with store: %s',
    async (store) => {
      fixture.upstream.script('responses', wholeResponse({ text: 'said' }))
      const body = { model: 'responses', messages: [{ role: 'user', content: 'hi' }], ...FIELDS, store }
      const answer = await fixture.chat('ann', body, { path: '/v1/chat/completions' })
      expect(answer.status, answer.text).toBe(200)
      const { verbosity, ...others } = FIELDS
      const sent: unknown = JSON.parse(fixture.upstream.only('responses').text)
      expect(sent).toMatchObject({ ...others, store, text: { verbosity } })
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    },
  )
})

/** A conversation with a thought in its history, of each dialect. */
const HISTORIES = {
  messages: (model: string): [string, object] => [
    '/v1/messages',
    {
      model,
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: '' },
            { type: 'text', text: 'well' },
          ],
        },
        { role: 'user', content: 'and?' },
      ],
    },
  ],
  responses: (model: string): [string, object] => [
    '/v1/responses',
    {
      model,
      input: [
        { role: 'user', content: 'hi' },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
        { role: 'assistant', content: 'well' },
        { role: 'user', content: 'and?' },
      ],
    },
  ],
  gemini: (model: string): [string, object] => [
    `/v1beta/models/${model}:generateContent`,
    {
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [{ text: 'hm', thought: true }, { text: 'well' }] },
        { role: 'user', parts: [{ text: 'and?' }] },
      ],
    },
  ],
}

describe.each(['messages', 'responses', 'gemini'] as const)('thoughts in the history of %s', (client) => {
  test.each([...THINKERS, 'stated-thinker'])(
    'thoughts in the history are sent to %s, which accepts them',
    async (model) => {
      const { sent, left } = await asked(...HISTORIES[client](model))
      expect(sent['messages']).toMatchObject([{}, { content: 'well', reasoning_content: 'hm' }, {}])
      expect(left).not.toContain('reasoning_content')
    },
  )

  test.each([...OTHERS, 'deepseek-stated'])(
    'thoughts in the history are dropped and listed for %s, which does not accept them',
    async (model) => {
      const { sent, left } = await asked(...HISTORIES[client](model))
      expect(JSON.stringify(sent['messages'])).not.toContain('reasoning')
      expect(sent['messages']).toMatchObject([{}, { content: 'well' }, {}])
      expect(left).toContain('reasoning_content')
    },
  )
})
