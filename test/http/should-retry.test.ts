import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: {
      ...priced(['m']),
      rare: { ...(priced(['m'])['m'] as object), rate_limit: { requests: 1, window: '1h' } },
    },
    channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'rare'] })],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })])],
  }))
})
afterAll(() => fixture?.close())

/** Counts the requests that a client actually sends. */
function counting(): { readonly fetch: typeof fetch; sent: number } {
  const counter = {
    sent: 0,
    fetch: (...given: Parameters<typeof fetch>) => {
      counter.sent += 1
      return fetch(...given)
    },
  }
  return counter
}

describe('official clients and a model without a channel', () => {
  test('the official OpenAI client does not retry a call of a model that no channel serves', async () => {
    const counter = counting()
    const client = new OpenAI({
      apiKey: 'sk-ann',
      baseURL: `${fixture.gateway.url}/v1`,
      fetch: counter.fetch,
    })
    const asking = client.chat.completions.create({
      model: 'unheard-of',
      messages: [{ role: 'user', content: 'hi' }],
    })
    await expect(asking).rejects.toMatchObject({ status: 503, code: 'model_not_found' })
    expect(counter.sent).toBe(1)
  })
  test('the official Anthropic client does not retry a call of a model that no channel serves', async () => {
    const counter = counting()
    const client = new Anthropic({ apiKey: 'sk-ann', baseURL: fixture.gateway.url, fetch: counter.fetch })
    const asking = client.messages.create({
      model: 'unheard-of',
      max_tokens: 5,
      messages: [{ role: 'user', content: 'hi' }],
    })
    await expect(asking).rejects.toMatchObject({ status: 503 })
    expect(counter.sent).toBe(1)
  })
})

describe('final errors', () => {
  const get = (path: string, key: string, method = 'GET'): Promise<FullResponse> =>
    call(fixture.gateway.url, undefined, { method, path, key })
  test.each<[string, number, () => Promise<FullResponse>]>([
    ['for a wrong field', 400, () => fixture.chat('ann', ask('m', { n: 0 }))],
    ['for invalid JSON', 400, () => fixture.chat('ann', '{')],
    ['for an unknown key', 401, () => fixture.chat('nobody', ask('m'))],
    ['for too little quota', 403, () => fixture.chat('poor', ask('m'))],
    ['for an unknown path', 404, () => get('/v1/nothing', 'ann')],
    ['for a model that does not exist', 404, () => get('/v1/models/unheard-of', 'ann')],
    ['for another method', 405, () => get('/v1/chat/completions', 'ann')],
    [
      'for another kind of body',
      415,
      () => fixture.chat('ann', 'x', { headers: { 'content-type': 'text/x' } }),
    ],
    ['for what is not implemented', 501, () => get('/v1/models/m', 'ann', 'DELETE')],
    ['for a model that no channel serves', 503, () => fixture.chat('ann', ask('unheard-of'))],
    ['for a request without an account', 401, () => get('/api/user/self', 'ann')],
  ])(
    'an error that a repetition cannot change has the header x-should-retry: false, as %s: %i',
    async (_, status, asking) => {
      const answer = await asking()
      expect(answer.status, answer.text).toBe(status)
      expect(answer.headers['x-should-retry']).toBe('false')
    },
  )
})

describe('errors without x-should-retry', () => {
  test.each<[string, number, () => Promise<FullResponse>]>([
    [
      'after a limit',
      429,
      async () => {
        fixture.upstream.script('m', { kind: 'whole' })
        await fixture.chat('ann', ask('rare'))
        return fixture.chat('ann', ask('rare'))
      },
    ],
    [
      'where no upstream could answer',
      500,
      () => {
        fixture.upstream.script('m', { kind: 'drop' })
        return fixture.chat('ann', ask('m'))
      },
    ],
    [
      "after an upstream's own error",
      503,
      () => {
        fixture.upstream.script('m', { kind: 'status', status: 503, body: errorBody('busy') })
        return fixture.chat('ann', ask('m'))
      },
    ],
  ])(
    'an error that may pass has no header x-should-retry, so that clients decide whether to retry, as %s: %i',
    async (_, status, asking) => {
      const answer = await asking()
      expect(answer.status, answer.text).toBe(status)
      expect(answer.headers).not.toHaveProperty('x-should-retry')
    },
  )
})
