import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'

const PROMPT = 'Answer "briefly".'
const OVERRIDE = {
  set: { temperature: 0.25, stop: ['a', { b: null }] },
  default: { top_p: 0.5, seed: 7 },
  remove: ['user'],
}

/**
 * Every channel except the last changes the request so that it costs more than a key of 500 units can pay.
 */
const HELD = {
  'long-prompt': { system_prompt: 'x'.repeat(1000) },
  'set-maximum': { override: { set: { max_tokens: 1000 } } },
  'no-maximum': { override: { remove: ['max_tokens'] } },
  'usual-maximum': { override: { default: { max_tokens: 20 } } },
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      'house-small': { price: PLAIN_PRICE },
      'house-large': { price: PLAIN_PRICE },
      'house-unpriced': {},
      other: { price: PLAIN_PRICE },
      flash: { price: PLAIN_PRICE },
      ...priced(Object.keys(HELD)),
    },
    channels: [
      channel('chat', upstream.baseUrl('chat'), { system_prompt: PROMPT, models: ['house-*'] }),
      channel('messages', upstream.baseUrl('messages'), {
        protocol: 'messages',
        system_prompt: PROMPT,
        models: ['other'],
      }),
      channel('gemini', upstream.baseUrl('gemini'), {
        protocol: 'gemini',
        system_prompt: PROMPT,
        override: OVERRIDE,
        models: ['flash'],
        model_mapping: { flash: 'their-flash' },
      }),
      channel('changed', upstream.baseUrl('changed'), {
        override: OVERRIDE,
        models: ['gpt-4o-mini'],
      }),
      ...Object.entries(HELD).map(([name, fields]) =>
        channel(name, upstream.baseUrl('changed'), { models: [name], ...fields }),
      ),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 500 })])],
  }))
})
afterAll(() => fixture?.close())
beforeEach(() => {
  for (const lane of ['chat', 'messages', 'changed']) {
    fixture.upstream.script(lane, lane === 'messages' ? wholeMessage([{ text: 'hi' }]) : { kind: 'whole' })
    fixture.upstream.forget(lane)
  }
})

describe('the system prompt of a channel', () => {
  test('the system prompt of a channel precedes the chat messages, whose other bytes stay unchanged', async () => {
    const body = '{"model":"house-small",  "messages":[ {"role":"user","content":"h\\u0069"}],"x":1.0}'
    expect((await fixture.chat('ann', Buffer.from(body))).status).toBe(200)
    expect(fixture.upstream.only('chat').text).toBe(
      '{"model":"house-small",  "messages":[{"role":"system","content":"Answer \\"briefly\\"."}, {"role":"user","content":"h\\u0069"}],"x":1.0}',
    )
  })

  test.each([
    ['be nice', `${PROMPT}\n\nbe nice`],
    [
      [{ type: 'text', text: 'be nice' }],
      [
        { type: 'text', text: PROMPT },
        { type: 'text', text: 'be nice' },
      ],
    ],
  ])("the system prompt of a channel precedes the client's own: %j", async (content, expected) => {
    const messages = [
      { role: 'developer', content },
      { role: 'user', content: 'hi' },
    ]
    expect((await fixture.chat('ann', { model: 'house-large', messages })).status).toBe(200)
    expect(JSON.parse(fixture.upstream.only('chat').text).messages).toEqual([
      { role: 'developer', content: expected },
      { role: 'user', content: 'hi' },
    ])
  })

  test.each([
    [{}, PROMPT],
    [{ system: 'be nice' }, `${PROMPT}\n\nbe nice`],
    [
      { system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] },
      [
        { type: 'text', text: PROMPT },
        { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } },
      ],
    ],
  ])(
    'the system prompt of a channel precedes the system of a messages request: %j',
    async (fields, expected) => {
      const body = ask('other', { max_tokens: 9, ...fields })
      const { status, text } = await call(fixture.gateway.url, body, { key: 'ann', path: '/v1/messages' })
      expect(status, text).toBe(200)
      expect(JSON.parse(fixture.upstream.only('messages').text).system).toEqual(expected)
    },
  )

  test("the system prompt of a channel precedes the client's system prompt in a converted request", async () => {
    const messages = [
      { role: 'system', content: 'be nice' },
      { role: 'user', content: 'hi' },
    ]
    await fixture.chat('ann', { model: 'other', messages })
    expect(JSON.stringify(JSON.parse(fixture.upstream.only('messages').text).system)).toMatch(
      /briefly.*be nice/,
    )
  })
})

describe('token counts of a channel with a system prompt', () => {
  test('a messages upstream counts the system prompt of its channel', async () => {
    fixture.upstream.script('messages', { kind: 'status', status: 200, body: '{"input_tokens":9}' })
    const body = ask('other', { system: 'be nice' })
    const { text } = await call(fixture.gateway.url, body, { key: 'ann', path: '/v1/messages/count_tokens' })
    expect(text).toBe('{"input_tokens":9}')
    expect(JSON.parse(fixture.upstream.only('messages').text)).toEqual({
      ...body,
      system: `${PROMPT}\n\nbe nice`,
    })
  })

  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
  const tools = [{ googleSearch: {} }]
  test.each([
    [{ contents }, [{ text: PROMPT }]],
    [{ generateContentRequest: { model: 'models/flash', contents, tools } }, [{ text: PROMPT }]],
    [
      {
        generateContentRequest: {
          model: 'models/flash',
          contents,
          systemInstruction: { parts: [{ text: 'be nice' }] },
        },
      },
      [{ text: PROMPT }, { text: 'be nice' }],
    ],
  ])('a Gemini upstream counts the system prompt of its channel: %j', async (body, parts) => {
    fixture.upstream.script('gemini', { kind: 'status', status: 200, body: '{"totalTokens":9}' })
    fixture.upstream.forget('gemini')
    const path = '/v1beta/models/flash:countTokens'
    const { text } = await call(fixture.gateway.url, body, { key: 'ann', path })
    expect(text).toBe('{"totalTokens":9}')
    const given = 'generateContentRequest' in body ? body.generateContentRequest : body
    expect(JSON.parse(fixture.upstream.only('gemini').text)).toEqual({
      generateContentRequest: { ...given, model: 'models/their-flash', systemInstruction: { parts } },
    })
  })
})

describe('the override of a channel', () => {
  test('the override of a channel sets, adds and removes members of the request, and changes no other byte', async () => {
    const body =
      '{"model":"gpt-4o-mini","temperature":1,"user":"u", "messages":[{"role":"user","content":"hi"}],"top_p":0.90}'
    expect((await fixture.chat('ann', Buffer.from(body))).status).toBe(200)
    expect(fixture.upstream.only('changed').text).toBe(
      '{"model":"gpt-4o-mini","temperature":0.25,"messages":[{"role":"user","content":"hi"}],"top_p":0.90,"seed":7,"stop":["a",{"b":null}]}',
    )
  })
})

describe('the hold of a changed request', () => {
  test.each(['long-prompt', 'set-maximum', 'no-maximum'])(
    'the hold of a call covers what a channel adds to the request: %s',
    async (model) => {
      const refused = await fixture.chat('poor', ask(model, { max_tokens: 5 }))
      expect([refused.status, refused.json().error.code]).toEqual([403, 'insufficient_quota'])
      expect(fixture.upstream.received('changed')).toHaveLength(0)
      expect((await fixture.chat('ann', ask(model, { max_tokens: 5 }))).status).toBe(200)
    },
  )

  test('the hold covers the output maximum that a channel sets where the client sets none', async () => {
    expect((await fixture.chat('poor', ask('usual-maximum'))).status).toBe(200)
  })
})

describe('a pattern in the models of a channel', () => {
  test('a pattern in the models of a channel matches every model with a price', async () => {
    const { text } = await call(fixture.gateway.url, undefined, {
      key: 'ann',
      method: 'GET',
      path: '/v1/models',
    })
    const names = JSON.parse(text).data.map(({ id }: { id: string }) => id)
    expect(names).toEqual(expect.arrayContaining(['house-small', 'house-large', 'other']))
    expect(names).not.toContain('house-unpriced')
    expect((await fixture.chat('ann', ask('house-unpriced'))).status).toBe(503)
  })
})
