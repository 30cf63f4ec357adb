import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { messageFrames, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

type Fields = Record<string, unknown>

/** Quota units a token: 1 for input, 1.25 and 2 for writes, 4 for output. */
const price = { input: 2, output: 8, cache_write_30m: 2.5, cache_write_1h: 4 }
const NAMES = ['chat', 'messages', 'responses'] as const
type Name = (typeof NAMES)[number]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: Object.fromEntries(NAMES.map((name) => [name, { price }])),
    channels: NAMES.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })]), ADMIN_USER],
  }))
})
afterAll(() => fixture?.close())

/** 40 tokens of input and 60 written for half an hour, without output. */
const DETAILS = { cache_write_tokens: 60, cache_write_tokens_details: { ttl_30m_tokens: 60 } }
const CHAT_USAGE = {
  prompt_tokens: 100,
  completion_tokens: 0,
  total_tokens: 100,
  prompt_tokens_details: DETAILS,
}
const RESPONSES_USAGE = JSON.stringify({
  input_tokens: 100,
  input_tokens_details: DETAILS,
  output_tokens: 0,
  total_tokens: 100,
})
const COUNTS = {
  input_tokens: 40,
  output_tokens: 0,
  cache_creation_input_tokens: 60,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 60 },
}
const HEAD = { id: 'c', created: 7, model: 'm' }
const frame = (fields: object): string =>
  `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', ...fields })}\n\n`
const none = { index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'stop' }

/** Requests that only fill a cache, and their answers, whole and streamed. */
const CASES: Readonly<
  Record<Name, { path: string; body: Fields; answers: readonly object[]; charge: number }>
> = {
  chat: {
    path: '/v1/chat/completions',
    body: {
      messages: [{ role: 'user', content: 'hi' }],
      prompt_cache_options: { prewarm: true, ttl: '30m' },
    },
    answers: [
      {
        kind: 'whole',
        body: JSON.stringify({ ...HEAD, object: 'chat.completion', choices: [none], usage: CHAT_USAGE }),
      },
      {
        kind: 'whole',
        body: JSON.stringify({ ...HEAD, object: 'chat.completion', choices: [], usage: CHAT_USAGE }),
      },
      {
        kind: 'stream',
        frames: [
          frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
          frame({ choices: [], usage: CHAT_USAGE }),
          'data: [DONE]\n\n',
        ],
        ending: 'no done',
      },
      {
        kind: 'stream',
        frames: [frame({ choices: [], usage: CHAT_USAGE }), 'data: [DONE]\n\n'],
        ending: 'no done',
      },
    ],
    charge: 40 + 75,
  },
  responses: {
    path: '/v1/responses',
    body: { input: 'hi', generate: false },
    answers: [wholeResponse({ usage: RESPONSES_USAGE }), streamedResponse({ usage: RESPONSES_USAGE })],
    charge: 40 + 75,
  },
  messages: {
    path: '/v1/messages',
    body: { max_tokens: 0, messages: [{ role: 'user', content: 'hi' }] },
    answers: [
      wholeMessage([], { counts: COUNTS, stop: 'max_tokens' }),
      {
        kind: 'stream',
        frames: messageFrames([], { counts: COUNTS, stop: 'max_tokens' }).map((text) =>
          text.replace('"output_tokens":1', '"output_tokens":0'),
        ),
        ending: 'no done',
      },
    ],
    charge: 40 + 120,
  },
}

describe('a call that only fills a cache', () => {
  test.each(NAMES)(
    'a call on %s that only fills the prompt cache is complete, and charged for the tokens that it wrote',
    async (name) => {
      const { path, body, answers, charge } = CASES[name]
      for (const answer of answers) {
        fixture.upstream.script(name, answer as never)
        const stream = (answer as { kind: string }).kind === 'stream'
        const { status, headers, text } = await call(
          fixture.gateway.url,
          { model: name, ...body, ...(stream && { stream }) },
          { key: 'ann', path },
        )
        expect(status, text).toBe(200)
        const { data } = await manage<Fields>(
          fixture.gateway.url,
          ADMIN,
          `GET /api/log/${String(headers['x-request-id'])}`,
        )
        expect(data).toMatchObject({ reason: 'complete', quota: charge, completion_tokens: 0 })
      }
    },
  )
})

describe('a breakpoint that conversion lengthens', () => {
  const text = 'word '.repeat(2000)
  const part = { text, prompt_cache_breakpoint: { mode: 'explicit' } }
  test.each([
    [
      '/v1/chat/completions',
      { max_tokens: 1, messages: [{ role: 'user', content: [{ ...part, type: 'text' }] }] },
    ],
    [
      '/v1/responses',
      { max_output_tokens: 1, input: [{ role: 'user', content: [{ ...part, type: 'input_text' }] }] },
    ],
  ])(
    'a call at %s with a cache mark of an hour holds the price of writing its prompt to the cache for an hour',
    async (path, fields) => {
      const body = { model: 'messages', ...fields }
      const refused = await fixture.chat('poor', body, { path })
      expect(refused.status, refused.text).toBe(403)
      const { needed } = JSON.parse(refused.text).error as { needed: number }
      const written = text.length
      fixture.upstream.script(
        'messages',
        wholeMessage([{ text: 'hi' }], {
          counts: {
            input_tokens: 1,
            output_tokens: 1,
            cache_creation_input_tokens: written,
            cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: written },
          },
        }),
      )
      const answer = await fixture.chat('ann', body, { path })
      expect(answer.status, answer.text).toBe(200)
      expect(fixture.upstream.received('messages').at(-1)?.text).toContain('"ttl":"1h"')
      const id = String(answer.headers['x-request-id'])
      const { data } = await manage<{ quota: number }>(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)
      // Two units for each token written.
      expect(data.quota).toBeGreaterThan(2 * written)
      expect(needed).toBeGreaterThanOrEqual(data.quota)
    },
  )
})
