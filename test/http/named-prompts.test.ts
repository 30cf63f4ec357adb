import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

/** Quota units of a prompt token that is written to a cache for an hour, the most expensive kind. */
const DEAREST = 2
/** The context in tokens of `m`, which has no price data, and of a model that has. */
const ASSUMED = 200_000
const KNOWN = { name: 'gpt-5', context: 400_000 }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { m: { price: PLAIN_PRICE }, [KNOWN.name]: { price: PLAIN_PRICE } },
    channels: [
      channel('m', upstream.baseUrl('m'), {
        protocol: ['responses', 'chat', 'messages', 'gemini'],
        models: ['m', KNOWN.name],
      }),
    ],
    users: [ROOT, user(2, 'ann', [token('cent', { remain_quota: 5_000 }), token('rich')])],
  }))
})
afterAll(() => fixture?.close())

const FILE = { type: 'input_file', file_id: 'file-abc' }
const PATHS = {
  responses: '/v1/responses',
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  gemini: '/v1beta/models/m:generateContent',
} as const
const says = (content: unknown) => ({ messages: [{ role: 'user', content }] })

const post = (path: string, fields: object, key = 'cent'): Promise<FullResponse> =>
  fixture.chat(key, { model: 'm', ...fields }, { path })

/** The quota units that a call would have needed, as its refusal states them. */
async function neededFor(path: string, fields: object): Promise<number> {
  const { status, text } = await post(path, fields)
  expect(status, text).toBe(403)
  const [, needed] = /(\d+) are needed/.exec(text) ?? []
  if (needed === undefined) throw new Error(text)
  return Number(needed)
}

const NAMED: readonly [string, keyof typeof PATHS, object][] = [
  ['a conversation', 'responses', { input: 'hi', conversation: 'conv_1' }],
  ['a conversation in an object', 'responses', { input: 'hi', conversation: { id: 'conv_1' } }],
  ['a prompt', 'responses', { input: 'hi', prompt: { id: 'pmpt_1' } }],
  ['an item', 'responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ['an item without a type', 'responses', { input: [{ id: 'rs_1' }] }],
  ['a file', 'responses', { input: [{ role: 'user', content: [FILE] }] }],
  ['a picture', 'responses', { input: [{ role: 'user', content: [{ ...FILE, type: 'input_image' }] }] }],
  ['a file of chat', 'chat', says([{ type: 'file', file: { file_id: 'file-abc' } }])],
  [
    'a file of messages',
    'messages',
    { max_tokens: 5, ...says([{ type: 'document', source: { type: 'file', file_id: 'file_1' } }]) },
  ],
  [
    'cached content',
    'gemini',
    { contents: [{ parts: [{ text: 'hi' }] }], cachedContent: 'cachedContents/1' },
  ],
  [
    'a long answer that is continued',
    'gemini',
    { contents: [{ parts: [{ text: 'hi' }] }], continuationToken: 'dG9rZW4=' },
  ],
]

describe('a prompt that the request only names', () => {
  test.each(NAMED)(
    "a call whose prompt is only named by an id holds the amount for the model's full context: %s",
    async (_, dialect, fields) => {
      const needed = await neededFor(PATHS[dialect], fields)
      expect(needed).toBeGreaterThanOrEqual(DEAREST * ASSUMED)
      expect(needed).toBeLessThan(DEAREST * (ASSUMED + 30_000))
    },
  )
  test("the hold for a prompt that is only named by an id takes the model's context size from the price data", async () => {
    const fields = { model: KNOWN.name, input: 'hi', conversation: 'conv_1' }
    expect(await neededFor(PATHS.responses, fields)).toBeGreaterThanOrEqual(DEAREST * KNOWN.context)
  })
  test('calls whose prompts are only named by an id cannot overdraw a balance, however many are sent at once', async () => {
    fixture.upstream.forget('m')
    const calls = Array.from({ length: 60 }, () =>
      post(PATHS.responses, { input: 'hi', max_output_tokens: 16, conversation: 'conv_1' }),
    )
    expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([403]))
    expect(fixture.upstream.received('m')).toHaveLength(0)
  })
  test('a call that names no stored prompt or file holds the amount for the size of its own request only', async () => {
    fixture.upstream.script('m', wholeResponse({}))
    const fields = { input: [{ role: 'user', content: 'hi' }], max_output_tokens: 16 }
    expect((await post(PATHS.responses, fields)).status).toBe(200)
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"file_id":"x"}' }
    const output = { type: 'function_call_output', call_id: 'c', output: 'done' }
    expect((await post(PATHS.responses, { input: [call, output], max_output_tokens: 16 })).status).toBe(200)
  })
})
