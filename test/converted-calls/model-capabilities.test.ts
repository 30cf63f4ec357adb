import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Channel } from '../../src/domain/records/channel.ts'
import type { MediaFetcher } from '../../src/call/media-fetcher.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { anyMedia, convertRequest } from '../conversion/convert.ts'
import { sentTo } from '../conversion/fixture.ts'

const CLAUDE = [
  'claude-3-5-haiku',
  'claude-sonnet-4-5',
  'claude-sonnet-4-6',
  'claude-opus-4-8',
  'claude-opus-5-5',
  'stated-budget',
  'stated-silent',
  'mapped',
]
const GEMINI = ['gemini-4-argon', 'gemini-3-pro']
const GPT = ['gpt-4o-mini', 'gpt-6-sol', 'gpt-5.4', 'o3', 'stated-sampling', 'plain', 'deployed-gpt-5']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      ...priced([...CLAUDE, ...GEMINI, ...GPT, 'marked', 'gpt-5.2']),
      'stated-budget': { vendor: 'acme', price: PLAIN_PRICE, thinking: 'budget' },
      'stated-silent': { vendor: 'acme', price: PLAIN_PRICE, thinking: 'none', sampling: false },
      'stated-sampling': { vendor: 'acme', price: PLAIN_PRICE, sampling: true },
    },
    channels: [
      channel('claude', upstream.baseUrl('claude'), {
        protocol: 'messages',
        models: CLAUDE,
        model_mapping: { mapped: 'claude-opus-5', 'stated-budget': 'claude-opus-5' },
      }),
      channel('gpt', upstream.baseUrl('gpt'), {
        models: GPT,
        model_mapping: { 'stated-sampling': 'gpt-5', 'deployed-gpt-5': 'deployment' },
      }),
      channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini', models: GEMINI }),
      channel('responses', upstream.baseUrl('responses'), { protocol: 'responses', models: ['gpt-5.2'] }),
      channel('marked', upstream.baseUrl('marked'), { allow: ['cache_control'] }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 20_000 })])],
  }))
})
afterAll(() => fixture?.close())

interface Sent {
  readonly body: Record<string, unknown>
  /** Names in `x-gateway-dropped`, sorted. */
  readonly dropped: readonly string[]
}

/** The request that a messages channel gets for a chat request. */
async function asMessages(fields: Record<string, unknown>): Promise<Sent> {
  fixture.upstream.forget('claude')
  fixture.upstream.script('claude', wholeMessage([{ text: 'Hello.' }]))
  const answer = await fixture.chat('ann', { messages: [{ role: 'user', content: 'hi' }], ...fields })
  return sent('claude', answer)
}

/** The request that a chat channel gets for a messages request. */
async function asChat(fields: Record<string, unknown>, lane = 'gpt'): Promise<Sent> {
  fixture.upstream.forget(lane)
  fixture.upstream.script(lane, wholeChat({ text: 'Hello.' }))
  const body = { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...fields }
  return sent(lane, await fixture.chat('ann', body, { path: '/v1/messages' }))
}

function sent(lane: string, answer: FullResponse): Sent {
  expect(answer.status).toBe(200)
  const { messages: _, tools: __, model: ___, ...body } = sentTo(fixture, lane)
  const dropped = String(answer.headers['x-gateway-dropped'] ?? '')
  return { body, dropped: dropped === '' ? [] : dropped.split(', ').toSorted() }
}

const SAMPLING = { temperature: 0.5, top_p: 0.9, top_k: 5 }
const parameters = { type: 'object', properties: {}, additionalProperties: false }
const tool = { type: 'function', function: { name: 'f', parameters } }

/** Thinking of a model that hides its thoughts unless a request asks for them. */
const SHOWN = { type: 'adaptive', display: 'summarized' }

describe('a chat request for a messages channel', () => {
  test.each([
    ['low', 1280, 8192],
    ['high', 4096, 8192],
    ['xhigh', 8192, 16_384],
    ['max', 16_384, 24_576],
  ])(
    "a chat request's reasoning_effort %s becomes a thinking budget of %i if the messages model has thinking budgets",
    async (effort, tokens, maximum) => {
      const { body, dropped } = await asMessages({ model: 'claude-sonnet-4-5', reasoning_effort: effort })
      expect(body).toEqual({
        max_tokens: maximum,
        thinking: { type: 'enabled', budget_tokens: tokens },
        temperature: 1,
      })
      expect(dropped).toEqual([])
    },
  )

  test.each(['none', 'minimal'])(
    'a chat request with reasoning_effort %s turns thinking off at a Messages model, or to low if it always thinks',
    async (effort) => {
      const { body } = await asMessages({ model: 'claude-sonnet-4-5', reasoning_effort: effort })
      expect(body['thinking']).toEqual({ type: 'disabled' })
      const always = await asMessages({ model: 'claude-opus-5-5', reasoning_effort: effort })
      expect(always.body).toEqual({
        max_tokens: 8192,
        thinking: { type: 'adaptive' },
        output_config: { effort: 'low' },
      })
    },
  )

  test.each(['claude-opus-4-8', 'mapped'])(
    "a chat request's reasoning_effort is sent to %s as effort, because the Messages model refuses thinking budgets",
    async (model) => {
      for (const effort of ['low', 'high', 'xhigh', 'max'])
        expect(await asMessages({ model, reasoning_effort: effort, ...SAMPLING })).toEqual({
          body: { max_tokens: 8192, thinking: SHOWN, output_config: { effort } },
          dropped: ['temperature', 'top_k', 'top_p'],
        })
      expect((await asMessages({ model, reasoning: { max_tokens: 3000 } })).body).toEqual({
        max_tokens: 8192,
        thinking: SHOWN,
        output_config: { effort: 'medium' },
      })
    },
  )

  test('reasoning.max_tokens of a chat request overrides reasoning_effort and the -thinking suffix of the model name', async () => {
    const reasoning = { max_tokens: 3000, effort: 'high' }
    for (const model of ['claude-sonnet-4-5', 'claude-sonnet-4-5-thinking'])
      expect((await asMessages({ model, reasoning, reasoning_effort: 'low' })).body).toMatchObject({
        max_tokens: 8192,
        thinking: { type: 'enabled', budget_tokens: 3000 },
      })
  })

  test('a chat request loses the sampling fields that the Messages model it is converted for refuses', async () => {
    expect(await asMessages({ model: 'claude-opus-4-8', ...SAMPLING })).toEqual({
      body: { max_tokens: 8192 },
      dropped: ['temperature', 'top_k', 'top_p'],
    })
    expect(await asMessages({ model: 'claude-sonnet-4-5', ...SAMPLING })).toEqual({
      body: { max_tokens: 8192, temperature: 0.5, top_k: 5 },
      dropped: ['top_p'],
    })
    expect(await asMessages({ model: 'claude-sonnet-4-5', top_p: 0.9 })).toEqual({
      body: { max_tokens: 8192, top_p: 0.9 },
      dropped: [],
    })
    expect(await asMessages({ model: 'claude-3-5-haiku', ...SAMPLING })).toEqual({
      body: { max_tokens: 8192, ...SAMPLING },
      dropped: [],
    })
  })

  test('the reasoning_effort of a chat request is dropped for a Messages model without thinking', async () => {
    for (const model of ['claude-3-5-haiku', 'stated-silent'])
      expect(await asMessages({ model, reasoning_effort: 'high' })).toEqual({
        body: { max_tokens: 8192 },
        dropped: ['thinking'],
      })
  })

  describe("a chat request that ends with an assistant's turn", () => {
    const history = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: '{' },
    ]
    const json_schema = { name: 'answer', strict: true, schema: parameters }
    const asked = { reasoning_effort: 'low', response_format: { type: 'json_schema', json_schema } }

    test.each([
      ['claude-sonnet-4-6', 'enabled'],
      ['claude-opus-5-5', 'adaptive'],
    ])(
      'a chat request that ends with an assistant turn gets a turn of the user for %s, and keeps schema and thinking',
      async (model, type) => {
        const { body, dropped } = await asMessages({ model, messages: history, ...asked })
        expect(sentTo(fixture, 'claude')['messages']).toEqual([
          { role: 'user', content: [{ type: 'text', text: 'hi' }] },
          { role: 'assistant', content: [{ type: 'text', text: '{' }] },
          { role: 'user', content: [{ type: 'text', text: '...' }] },
        ])
        expect(body).toMatchObject({
          thinking: { type },
          output_config: { format: { type: 'json_schema', schema: parameters } },
        })
        expect(dropped).toEqual(['messages.prefill'])
      },
    )

    test('a chat request that ends with an assistant turn stays so for Claude before 4.6, and without words everywhere', async () => {
      expect((await asMessages({ model: 'claude-sonnet-4-5', messages: history })).dropped).toEqual([])
      expect(sentTo(fixture, 'claude')['messages']).toHaveLength(2)
      const silent = [history[0], { role: 'assistant', content: ' ' }]
      expect((await asMessages({ model: 'claude-sonnet-4-6', messages: silent })).dropped).toEqual([])
      expect(sentTo(fixture, 'claude')['messages']).toHaveLength(1)
    })
  })

  test('a chat request holds the cost of a thinking budget in addition to max_tokens, if the model gets such a budget', async () => {
    // At 4 quota units an output token, 100 tokens are affordable, and 16,384 more are not.
    const status = async (model: string): Promise<number> => {
      fixture.upstream.script('claude', wholeMessage([{ text: 'Hello.' }]))
      const asked = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 100, reasoning_effort: 'max' }
      return (await fixture.chat('poor', { model, ...asked })).status
    }
    expect(await status('claude-sonnet-4-5')).toBe(403)
    expect(await status('claude-opus-4-8')).toBe(200)
  })

  test('a chat request is converted by the capabilities that the operator configured for the model', async () => {
    expect((await asMessages({ model: 'stated-budget', reasoning_effort: 'low' })).body).toEqual({
      max_tokens: 8192,
      thinking: { type: 'enabled', budget_tokens: 1280, display: 'summarized' },
    })
    expect(await asMessages({ model: 'stated-silent', ...SAMPLING })).toEqual({
      body: { max_tokens: 8192 },
      dropped: ['temperature', 'top_k', 'top_p'],
    })
  })

  test('a chat request converted to Messages keeps strict tools strict, and only the tools in allowed_tools', async () => {
    const named = (name: string, strict?: boolean): object => ({
      ...tool,
      function: { ...tool.function, name, strict },
    })
    fixture.upstream.forget('claude')
    fixture.upstream.script('claude', wholeMessage([{ text: 'Hello.' }]))
    const answer = await fixture.chat('ann', {
      model: 'claude-sonnet-4-5',
      messages: [{ role: 'user', content: 'hi' }],
      tools: [named('a', true), named('b'), named('c', false)],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [named('a'), named('c')] },
      },
    })
    expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    const input_schema = parameters
    expect(sentTo(fixture, 'claude')).toMatchObject({
      tools: [
        { name: 'a', strict: true, input_schema },
        { name: 'c', strict: false, input_schema },
      ],
      tool_choice: { type: 'any' },
    })
  })
})

describe('a messages request for a chat channel', () => {
  const thinking = { type: 'enabled', budget_tokens: 4096 }

  test('the thinking of a Messages request is dropped for a chat model that does not reason', async () => {
    expect(await asChat({ model: 'gpt-4o-mini', max_tokens: 5000, thinking, temperature: 0.5 })).toEqual({
      body: { max_tokens: 5000, temperature: 0.5 },
      dropped: ['thinking'],
    })
  })

  test.each([[thinking], [{ type: 'adaptive' }]])(
    'a Messages request with the thinking %j loses its sampling fields for a chat model that thinks',
    async (asked) => {
      const { body, dropped } = await asChat({
        model: 'plain',
        max_tokens: 5000,
        thinking: asked,
        ...SAMPLING,
      })
      for (const field of Object.keys(SAMPLING)) expect(body).not.toHaveProperty(field)
      expect(dropped).toEqual(['temperature', 'top_k', 'top_p'])
      const disabled = await asChat({ model: 'plain', thinking: { type: 'disabled' }, ...SAMPLING })
      expect(disabled.body).toMatchObject({ temperature: 0.5, top_p: 0.9 })
    },
  )

  test('a Messages request gets max_completion_tokens and no sampling fields for chat models that reason', async () => {
    for (const model of ['gpt-6-sol', 'deployed-gpt-5'])
      expect(await asChat({ model, temperature: 0.5, top_p: 0.9 })).toEqual({
        body: { max_completion_tokens: 100 },
        dropped: ['temperature', 'top_p'],
      })
    expect(await asChat({ model: 'stated-sampling', temperature: 0.5 })).toEqual({
      body: { max_completion_tokens: 100, temperature: 0.5 },
      dropped: [],
    })
  })

  test('a Messages request loses its stop sequences for chat models that refuse them', async () => {
    for (const model of ['o3', 'gpt-5.4', 'deployed-gpt-5'])
      expect(await asChat({ model, stop_sequences: ['X'] })).toEqual({
        body: { max_completion_tokens: 100 },
        dropped: ['stop'],
      })
    for (const model of ['gpt-6-sol', 'gpt-4o-mini', 'stated-sampling'])
      expect(await asChat({ model, stop_sequences: ['X'] })).toMatchObject({
        body: { stop: ['X'] },
        dropped: [],
      })
  })

  test.each([
    ['gpt-5.4', 'high', false],
    ['gpt-5.4', 'none', true],
    ['gpt-5.4', undefined, true],
    ['o3', undefined, false],
    ['gpt-4o-mini', undefined, true],
  ])(
    'whether a Responses request for the chat model %s with the effort %s gets log probabilities: %s',
    async (model, effort, gets) => {
      fixture.upstream.forget('gpt')
      fixture.upstream.script('gpt', wholeChat({ text: 'Hello.' }))
      const asked = { model, input: 'hi', top_logprobs: 2, ...(effort && { reasoning: { effort } }) }
      const { body, dropped } = sent('gpt', await fixture.chat('ann', asked, { path: '/v1/responses' }))
      expect(body['top_logprobs']).toBe(gets ? 2 : undefined)
      expect(body['logprobs']).toBe(gets ? true : undefined)
      expect(dropped).toEqual(gets ? [] : ['logprobs', 'top_logprobs'])
    },
  )

  test.each([
    ['high', false],
    ['none', true],
  ])(
    'whether a chat request for a Responses model with the effort %s gets log probabilities: %s',
    async (effort, gets) => {
      fixture.upstream.forget('responses')
      fixture.upstream.script('responses', wholeResponse({ text: 'Hello.' }))
      const messages = [{ role: 'user', content: 'hi' }]
      const asked = { model: 'gpt-5.2', messages, logprobs: true, top_logprobs: 2, reasoning_effort: effort }
      const { body, dropped } = sent('responses', await fixture.chat('ann', asked))
      expect(body['top_logprobs']).toBe(gets ? 2 : undefined)
      expect(body['include'] ?? []).toEqual(
        gets ? ['message.output_text.logprobs'] : ['reasoning.encrypted_content'],
      )
      expect(dropped).toEqual(gets ? [] : ['logprobs', 'top_logprobs'])
    },
  )

  test.each([
    ['gpt-6-sol', 'max', 'max'],
    ['gpt-5.4', 'max', 'xhigh'],
    ['plain', 'xhigh', 'high'],
    ['plain', 'low', 'low'],
  ])(
    'a messages request converted for the chat model %s sends the effort %s as reasoning_effort %s',
    async (model, effort, told) => {
      const { body } = await asChat({ model, output_config: { effort } })
      expect(body['reasoning_effort']).toBe(told)
    },
  )

  test('a Messages request without thinking gets reasoning_effort none for chat models that accept it', async () => {
    const off = { type: 'disabled' }
    expect((await asChat({ model: 'gpt-6-sol', thinking: off })).body['reasoning_effort']).toBe('none')
    expect((await asChat({ model: 'plain', thinking: off })).body).not.toHaveProperty('reasoning_effort')
  })

  test('a Messages request converted to chat keeps strict tools strict', async () => {
    await asChat({ model: 'plain', tools: [{ name: 'f', input_schema: parameters, strict: true }] })
    expect(sentTo(fixture, 'gpt')['tools']).toEqual([
      { type: 'function', function: { name: 'f', parameters, strict: true } },
    ])
  })

  const cache_control = { type: 'ephemeral', ttl: '1h' }
  const marked = {
    system: [{ type: 'text', text: 'Rules.', cache_control }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control }] }],
    tools: [{ name: 'f', input_schema: { type: 'object' }, cache_control }],
  }

  test('a Messages request converted to chat loses its cache_control fields, which strict providers refuse', async () => {
    expect((await asChat({ model: 'plain', ...marked })).dropped).toEqual(['cache_control'])
    expect(sentTo(fixture, 'gpt')).toMatchObject({
      messages: [
        { role: 'system', content: 'Rules.' },
        { role: 'user', content: 'hi' },
      ],
    })
    expect(fixture.upstream.only('gpt').text).not.toContain('cache_control')
  })

  test('a Messages request converted to chat keeps its cache_control fields if the channel allows them', async () => {
    expect((await asChat({ model: 'marked', ...marked }, 'marked')).dropped).toEqual([])
    expect(sentTo(fixture, 'marked')).toMatchObject({
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'Rules.', cache_control }] },
        { role: 'user', content: [{ type: 'text', text: 'hi', cache_control }] },
      ],
      tools: [{ type: 'function', cache_control }],
    })
  })

  describe('the provider of the channel', () => {
    let media: MediaFetcher
    beforeAll(() => {
      media = anyMedia()
    })
    afterAll(() => media?.close())

    test.each([
      ['https://openrouter.ai/api/v1', true],
      ['https://eu.openrouter.ai/api/v1', true],
      ['https://notopenrouter.ai/api/v1', false],
      ['https://openrouter.ai.example/api/v1', false],
    ])(
      'a chat provider gets the cache marks of a messages request only if it is OpenRouter (%s: %s)',
      async (baseUrl, takes) => {
        const body = Buffer.from(JSON.stringify({ model: 'm', max_tokens: 5, ...marked }))
        const channel: Partial<Channel> = { base_url: baseUrl }
        const converted = await convertRequest('messages', body, media, channel)
        if ('refused' in converted) throw new Error(converted.refused)
        expect(converted.body.toString().includes('cache_control')).toBe(takes)
        expect(converted.dropped).toEqual(takes ? [] : ['cache_control'])
      },
    )
  })
})

describe('a whole answer of Gemini', () => {
  const messages = [{ role: 'user', content: 'hi' }]
  const asked = [
    ['chat', '/v1/chat/completions', { messages, max_completion_tokens: 32_769 }],
    ['messages', '/v1/messages', { messages, max_tokens: 64_000 }],
    ['responses', '/v1/responses', { input: 'hi', max_output_tokens: 200_000 }],
  ] as const

  test.each(asked)(
    'a whole answer of more than 32,768 tokens is asked of Gemini 4 as a stream, and collected for a client of %s',
    async (_, path, fields) => {
      fixture.upstream.forget('gemini')
      fixture.upstream.script('gemini', streamedGemini({ text: 'Hello there.', finish: 'MAX_TOKENS' }))
      const answer = await fixture.chat('ann', { model: 'gemini-4-argon', ...fields }, { path })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      expect(answer.text).toContain('"Hello there."')
      expect(answer.text).toMatch(/"(?:length|max_tokens|max_output_tokens)"/)
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
      expect(fixture.upstream.only('gemini').path).toMatch(/\/gemini-4-argon:streamGenerateContent\?alt=sse$/)
    },
  )

  test.each([
    ['gemini-4-argon', 32_768],
    ['gemini-3-pro', 65_536],
  ])('a whole answer of %s of up to %i tokens is asked as a whole', async (model, maximum) => {
    fixture.upstream.forget('gemini')
    fixture.upstream.script('gemini', wholeGemini())
    const answer = await fixture.chat('ann', { model, messages, max_completion_tokens: maximum })
    expect(answer.status, answer.text).toBe(200)
    expect(fixture.upstream.only('gemini').path).toMatch(/:generateContent$/)
  })
})
