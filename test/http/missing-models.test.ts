import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { messagesErrorText, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** More models than the number of consecutive failures that opens a channel's circuit breaker. */
const RETIRED = ['old1', 'old2', 'old3', 'old4', 'old5', 'old6', 'old7']
const BY_BOTH = [...RETIRED, 'gone', 'kept', 'all', 'mixed', 'back']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 2 },
    models: priced([...BY_BOTH, 'only', 'claude']),
    channels: [
      channel('first', upstream.baseUrl('first'), { models: [...BY_BOTH, 'only'], priority: 5 }),
      channel('spare', upstream.baseUrl('spare'), { models: BY_BOTH }),
      ...[5, 4].map((priority) =>
        channel(`claude-${priority}`, upstream.baseUrl(`claude-${priority}`), {
          protocol: 'messages',
          models: ['claude'],
          priority,
        }),
      ),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const notFound = (message: string): Behaviour => ({
  kind: 'status',
  status: 404,
  body: errorBody(message, 'not_found_error', 'model_not_found'),
})
const count = (lane: string): number => fixture.upstream.received(lane).length
/** Metrics of missing models. */
async function figures(): Promise<string[]> {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
  return text.split('\n').filter((line) => line.startsWith('sluice_missing_models'))
}
const chat = (model: string): Promise<FullResponse> => fixture.chat('ann', ask(model))

describe('a channel that answers 404 for a model', () => {
  test('a channel without the model is skipped for this model while another channel serves it, but not for other models', async () => {
    fixture.upstream.script('first', notFound('retired'))
    fixture.upstream.script('spare', { kind: 'whole' })
    for (let i = 0; i < 4; i++) expect((await chat('gone')).status).toBe(200)
    expect([count('first'), count('spare')]).toEqual([1, 4])
    expect(await figures()).toContain('sluice_missing_models{channel="first",model="gone"} 1')
    fixture.upstream.script('first', { kind: 'whole' })
    await chat('kept')
    expect(count('first')).toBe(1)
  })

  test('the only channel of a model is called again after its 404 for the model, and the client gets that 404', async () => {
    fixture.upstream.script('first', notFound('retired'))
    for (let i = 0; i < 2; i++) {
      const answer = await chat('only')
      expect(answer.status).toBe(404)
      expect(answer.json().error).toEqual({
        message: 'retired',
        type: 'not_found_error',
        code: 'model_not_found',
      })
    }
    expect(count('first')).toBe(2)
    fixture.upstream.script('first', { kind: 'whole' })
    expect(await figures()).toContain('sluice_missing_models{channel="first",model="only"} 1')
    expect((await chat('only')).status).toBe(200)
    expect(await figures()).not.toContain('sluice_missing_models{channel="first",model="only"} 1')
  })

  test("the client gets the last channel's 404 where every channel lacks the model", async () => {
    fixture.upstream.script('first', notFound('not here'))
    fixture.upstream.script('spare', notFound('nor here'))
    for (let i = 0; i < 2; i++) {
      const answer = await chat('all')
      expect(answer.status).toBe(404)
      expect(answer.json().error.message).toBe('nor here')
    }
    expect([count('first'), count('spare')]).toEqual([2, 2])
  })

  test('a 404 of one channel does not hide the failure of another one, which may have the model', async () => {
    fixture.upstream.script('first', { kind: 'status', status: 503, body: errorBody('maintenance') })
    fixture.upstream.script('spare', notFound('not here'))
    const answer = await chat('mixed')
    expect(answer.status).toBe(503)
    expect(answer.json().error.message).toBe('maintenance')
  })

  test('a channel that lacked a model is preferred again as soon as it has answered for that model', async () => {
    fixture.upstream.script('first', notFound('not here'))
    fixture.upstream.script('spare', notFound('not yet'))
    expect((await chat('back')).status).toBe(404)
    fixture.upstream.script('spare', { kind: 'whole' })
    expect((await chat('back')).status).toBe(200)
    fixture.upstream.forget('first')
    fixture.upstream.forget('spare')
    expect((await chat('back')).status).toBe(200)
    expect([count('first'), count('spare')]).toEqual([0, 1])
  })

  test('a channel stays in use for other models, however many models it lacks: its circuit breaker stays closed', async () => {
    fixture.upstream.script('first', notFound('retired'))
    fixture.upstream.script('spare', { kind: 'whole' })
    for (const model of RETIRED) expect((await chat(model)).status).toBe(200)
    expect(count('first')).toBe(RETIRED.length)
    const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
    expect(text).toMatch(/^sluice_resting_channels 0$/m)
  })
})

test('a 404 for counting tokens does not mark the model as missing: tokens are counted locally, and calls continue', async () => {
  const body = { model: 'claude', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
  const post = (path: string): Promise<FullResponse> => fixture.chat('ann', body, { path })
  fixture.upstream.script('claude-5', {
    kind: 'status',
    status: 404,
    body: messagesErrorText('not_found_error', 'no such path'),
  })
  fixture.upstream.script('claude-4', { kind: 'whole', body: '{"input_tokens": 4711}' })
  const counted = await post('/v1/messages/count_tokens')
  expect(counted.status).toBe(200)
  expect((JSON.parse(counted.text) as { input_tokens: number }).input_tokens).toBeLessThan(60)
  expect([count('claude-5'), count('claude-4')]).toEqual([1, 0])

  fixture.upstream.script('claude-5', wholeMessage([{ text: 'from the first' }]))
  expect((await post('/v1/messages')).text).toContain('from the first')
  expect(count('claude-4')).toBe(0)
  expect(fixture.gateway.logs()).not.toMatch(/"channel":"claude-5"[^\n]*"msg":"upstream failed"/)
})

test('count_tokens is answered by a local count where one upstream fails and the other has no endpoint for counting', async () => {
  fixture.upstream.script('claude-5', { kind: 'status', status: 500, body: '{}' })
  fixture.upstream.script('claude-4', { kind: 'status', status: 404, body: '{}' })
  const body = { model: 'claude', messages: [{ role: 'user', content: 'hi' }] }
  const counted = await fixture.chat('ann', body, { path: '/v1/messages/count_tokens' })
  expect(counted.status).toBe(200)
})
