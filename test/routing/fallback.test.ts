import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Behaviour, errorBody, usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { manage } from '../fixtures/account.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'

const FAILING: Behaviour = { kind: 'status', status: 503, body: errorBody('out of order') }
/** One and four quota units a token; the expensive model costs ten times as much. */
const PLAIN = { input: 2, output: 8 }
const DEAR = { input: 20, output: 80 }
const ADMIN = { id: ROOT.id, accessToken: ROOT.access_token }
const LANES = ['first', 'second', 'spare', 'texts', 'other-texts', 'limited', 'resting', 'storing']

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    groups: { default: { ratio: 1 }, half: { ratio: 0.5 } },
    models: {
      first: { price: PLAIN, fallback: ['second', 'spare'] },
      second: { price: DEAR, vendor: 'acme' },
      spare: { price: PLAIN },
      gone: { price: PLAIN, fallback: ['spare'] },
      texts: { price: PLAIN, fallback: ['other-texts'] },
      'other-texts': { price: DEAR },
      limited: { price: PLAIN, rate_limit: { requests: 1, window: '10m' }, fallback: ['spare'] },
      'to-limited': { price: PLAIN, fallback: ['limited', 'spare'] },
      resting: { price: PLAIN, fallback: ['spare'] },
      storing: { price: PLAIN, fallback: ['spare'] },
      unpriced: { price: PLAIN, fallback: ['nameless', 'spare'] },
    },
    channels: [
      channel('first', upstream.baseUrl('first'), { models: ['first', 'to-limited', 'unpriced'] }),
      channel('second', upstream.baseUrl('second'), {
        protocol: 'messages',
        groups: ['default', 'half'],
        model_mapping: { second: 'their-second' },
      }),
      channel('spare', upstream.baseUrl('spare'), { models: ['spare', 'nameless'] }),
      channel('texts', upstream.baseUrl('texts')),
      channel('other-texts', upstream.baseUrl('other-texts')),
      channel('limited', upstream.baseUrl('limited')),
      channel('resting', upstream.baseUrl('resting')),
      channel('storing', upstream.baseUrl('storing'), { protocol: 'responses' }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('narrow', { model_limits_enabled: true, model_limits: 'first' }),
        token('routed', { vendor_routes: '{"acme":"half"}' }),
        token('small', { remain_quota: 400 }),
      ]),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())
beforeEach(() => {
  for (const lane of LANES) {
    fixture.upstream.script(lane, { kind: 'whole', usage: usageText(10, 5) })
    fixture.upstream.forget(lane)
  }
  fixture.upstream.script('second', wholeMessage([{ text: 'from the second' }]))
})

describe('a call whose channels have all failed', () => {
  test('a call falls back to the next model, converted for its channel, and is charged the price of that model', async () => {
    fixture.upstream.script('first', FAILING)
    const answer = await fixture.chat('ann', ask('first', { max_tokens: 20 }))
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json().choices[0]?.message.content).toBe('from the second')
    expect(answer.headers['x-gateway-model']).toBe('second')
    expect(JSON.parse(fixture.upstream.only('second').text)).toMatchObject({ model: 'their-second' })
    expect(fixture.upstream.received('first')).toHaveLength(1)
    expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({
      model: 'second',
      requested_model: 'first',
      upstream_model: 'their-second',
      channel: 'second',
      input_tokens: 10,
      output_tokens: 5,
      quota: 10 * 10 + 5 * 40,
    })
  })

  test('a streamed call falls back to the next model, converted for its channel, when the first model fails', async () => {
    fixture.upstream.script('first', FAILING)
    fixture.upstream.script('second', streamedMessage([{ text: 'ab' }]))
    const answer = await fixture.chat('ann', askStream('first', { max_tokens: 20 }))
    expect(answer.headers['x-gateway-model']).toBe('second')
    expect(answer.text).toContain('"content":"a"')
    expect(answer.text).toContain('data: [DONE]')
    const row = database.usageOf(String(answer.headers['x-request-id']))
    expect(row).toMatchObject({ model: 'second', quota: 300, stream: 1 })
  })

  test('a call tries the fallback models in order until one answers', async () => {
    fixture.upstream.script('first', FAILING)
    fixture.upstream.script('second', FAILING)
    const answer = await fixture.chat('ann', ask('first'))
    expect(answer.headers['x-gateway-model']).toBe('spare')
    expect(JSON.parse(fixture.upstream.only('spare').text)).toMatchObject({ model: 'spare' })
    const row = database.usageOf(String(answer.headers['x-request-id']))
    expect(row).toMatchObject({ model: 'spare', quota: 10 + 5 * 4 })
  })

  test('a call whose fallbacks all fail gets the last error, and costs nothing', async () => {
    for (const lane of ['first', 'second', 'spare']) fixture.upstream.script(lane, FAILING)
    const answer = await fixture.chat('ann', ask('first'))
    expect(answer.status).toBe(503)
    expect(fixture.upstream.received('spare')).toHaveLength(1)
    await expect.poll(() => database.openHolds()).toHaveLength(0)
    expect(database.usage().find(({ id }) => id === answer.headers['x-request-id'])?.quota ?? 0).toBe(0)
  })

  test('a call does not fall back after a failure that is the client’s own', async () => {
    fixture.upstream.script('first', { kind: 'status', status: 400, body: errorBody('not so') })
    expect((await fixture.chat('ann', ask('first'))).status).toBe(400)
    expect(fixture.upstream.received('second')).toHaveLength(0)
  })

  test('a messages call falls back with only the model name changed in its bytes, and x-gateway-model names the fallback', async () => {
    fixture.upstream.script('first', FAILING)
    const body = '{"model":"first",  "max_tokens":20,"messages":[{"role":"user","content":"h\\u0069"}]}'
    const answer = await call(fixture.gateway.url, Buffer.from(body), { key: 'ann', path: '/v1/messages' })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-model']).toBe('second')
    expect(fixture.upstream.only('second').text).toBe(body.replace('first', 'their-second'))
  })

  test.each([
    ['/v1/responses', { input: 'hi' }],
    ['/v1beta/models/first:generateContent', { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }],
    ['/v1/completions', { prompt: 'hi' }],
  ])('a call at %s falls back to the next model when the first one fails', async (path, fields) => {
    fixture.upstream.script('first', FAILING)
    const body = path.includes(':') ? fields : { model: 'first', ...fields }
    const answer = await call(fixture.gateway.url, body, { key: 'ann', path })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-model']).toBe('second')
    expect(answer.text).toContain('from the second')
  })

  test('a call for embeddings falls back to the next embeddings model when the first one fails', async () => {
    fixture.upstream.script('texts', FAILING)
    const vectors =
      '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":3,"total_tokens":3}}'
    fixture.upstream.script('other-texts', { kind: 'whole', body: vectors })
    const body = { model: 'texts', input: 'hi' }
    const answer = await call(fixture.gateway.url, body, { key: 'ann', path: '/v1/embeddings' })
    expect(answer.status, answer.text).toBe(200)
    expect(JSON.parse(fixture.upstream.only('other-texts').text)).toMatchObject({ model: 'other-texts' })
    const row = database.usageOf(String(answer.headers['x-request-id']))
    expect(row).toMatchObject({ model: 'other-texts', quota: 30 })
  })
})

describe('a model with fallbacks', () => {
  test('the header x-gateway-model names a model with fallbacks, even if that model answers the call itself', async () => {
    const answer = await fixture.chat('ann', ask('first'))
    expect(answer.headers['x-gateway-model']).toBe('first')
    expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({
      model: 'first',
      quota: 30,
    })
    expect((await fixture.chat('ann', ask('spare'))).headers['x-gateway-model']).toBeUndefined()
  })

  test('a model without a channel is answered by its fallbacks, and is in the model list', async () => {
    const answer = await fixture.chat('ann', ask('gone'))
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-model']).toBe('spare')
    const id = String(answer.headers['x-request-id'])
    expect(database.usageOf(id)).toMatchObject({ model: 'spare', requested_model: 'gone' })
    const shown = { model_name: 'spare', requested_model: 'gone' }
    const { url } = fixture.gateway
    const rows = await manage<{ items: object[] }>(url, ADMIN, `GET /api/log/?request_id=${id}`)
    expect(rows.data.items).toMatchObject([shown])
    const headers = { authorization: ADMIN.accessToken, 'gateway-user': '1' }
    const file = await fetch(`${url}/api/log/export?request_id=${id}`, { headers })
    const [names = '', values = ''] = (await file.text()).split('\r\n')
    const cells = values.split(',')
    const exported = names.split(',').map((name, index) => [name, cells[index]])
    expect(Object.fromEntries(exported)).toMatchObject(shown)
    const list = await call(fixture.gateway.url, undefined, { key: 'ann', path: '/v1/models', method: 'GET' })
    expect(list.text).toContain('"gone"')
  })

  test("a key needs permission only for the model that it calls, not for the model's fallbacks", async () => {
    fixture.upstream.script('first', FAILING)
    expect((await fixture.chat('narrow', ask('first'))).headers['x-gateway-model']).toBe('second')
    expect((await fixture.chat('narrow', ask('second'))).status).toBe(403)
  })

  test("a fallback model is called in the group that the key has for that model's vendor", async () => {
    fixture.upstream.script('first', FAILING)
    const answer = await fixture.chat('routed', ask('first'))
    const row = database.usageOf(String(answer.headers['x-request-id']))
    expect(row).toMatchObject({ model: 'second', group_name: 'half', quota: 150 })
  })

  test('the hold of a call with fallbacks covers the price of the most expensive model among them', async () => {
    // 10 output tokens: 40 units of the model itself, and 400 of the second beside the prompt.
    const answer = await fixture.chat('small', ask('first', { max_tokens: 10 }))
    expect(answer.status).toBe(403)
    expect(answer.json().error.code).toBe('insufficient_quota')
    expect((await fixture.chat('small', ask('spare', { max_tokens: 10 }))).status).toBe(200)
  })

  test('fallback models without a price are skipped', async () => {
    fixture.upstream.script('first', FAILING)
    expect((await fixture.chat('ann', ask('unpriced'))).headers['x-gateway-model']).toBe('spare')
  })

  test('a call that falls back counts also against the rate limit of the fallback model', async () => {
    fixture.upstream.script('first', FAILING)
    const names: unknown[] = []
    for (let i = 0; i < 2; i++)
      names.push((await fixture.chat('ann', ask('to-limited'))).headers['x-gateway-model'])
    expect(names).toEqual(['limited', 'spare'])
    expect((await fixture.chat('ann', ask('limited'))).status).toBe(429)
  })
})

test('a model whose channels are all in cooldown is skipped, and its fallback called', async () => {
  fixture.upstream.script('resting', FAILING)
  for (let i = 0; i < 6; i++)
    expect((await fixture.chat('ann', ask('resting'))).headers['x-gateway-model']).toBe('spare')
  // Five failures open the circuit for five seconds, which may pass on a slow machine.
  const times = fixture.upstream.received('resting').map(({ at }) => at)
  expect(times.length).toBeGreaterThanOrEqual(5)
  expect(times.slice(5).filter((at, more) => at - (times[more + 4] ?? 0) < 5_000)).toEqual([])
})

test('a call that continues a stored response does not fall back', async () => {
  const storing = storingUpstream('storing')
  fixture.upstream.decide('storing', (request) => storing.decision(request))
  const post = (fields: object): Promise<FullResponse> =>
    call(
      fixture.gateway.url,
      { model: 'storing', input: 'hi', ...fields },
      { key: 'ann', path: '/v1/responses' },
    )
  const { id } = (await post({})).json()
  fixture.upstream.script('storing', FAILING)
  const continued = await post({ previous_response_id: id })
  expect(continued.status).toBe(503)
  expect(fixture.upstream.received('spare')).toHaveLength(0)
  expect((await post({})).headers['x-gateway-model']).toBe('spare')
})
