import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { responsesUsage, wholeResponse } from '../fixtures/responses-behaviour.ts'

let fixture: Fixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['native', 'chat', 'mapped', 'both']),
    channels: [
      channel('native', upstream.baseUrl('native'), { protocol: 'responses' }),
      channel('chat', upstream.baseUrl('chat')),
      channel('mapped', upstream.baseUrl('mapped'), {
        protocol: ['chat', 'responses'],
        model_mapping: { mapped: 'their-name' },
        disable_store: true,
      }),
      channel('first', upstream.baseUrl('first'), { models: ['both'], priority: 1 }),
      channel('second', upstream.baseUrl('second'), { models: ['both'], protocol: 'responses' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 500 })])],
  }))
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const post = (path: string, fields: object, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { input: 'How many tokens are these?', ...fields }, { path: `/v1/responses/${path}` })
const spent = (): number => databaseOf(fixture.gateway.dataDir).user('ann').used_quota
const rows = (): number => databaseOf(fixture.gateway.dataDir).usage().length

describe('the tokens of an input', () => {
  const COUNTED = '{"object":"response.input_tokens",  "input_tokens":4711}'

  test('the tokens of an input are counted by an upstream that speaks responses, under its model name, for free', async () => {
    const before = [spent(), rows()]
    for (const model of ['native', 'mapped']) {
      fixture.upstream.script(model, { kind: 'whole', body: COUNTED })
      expect((await post('input_tokens', { model, x_new: 1 })).text).toBe(COUNTED)
    }
    expect(fixture.upstream.only('native').path).toBe('/v1/responses/input_tokens')
    expect(JSON.parse(fixture.upstream.only('mapped').text)).toEqual({
      input: 'How many tokens are these?',
      model: 'their-name',
      x_new: 1,
    })
    expect([spent(), rows()]).toEqual(before)
  })

  test.each(['chat', 'native'])(
    'the tokens of an input are counted by the gateway where the upstream of %s cannot count them',
    async (model) => {
      fixture.upstream.script(model, { kind: 'status', status: 404, body: '{}' })
      const before = [spent(), rows()]
      const counted = await client.responses.inputTokens.count({ model, input: 'How many tokens are these?' })
      expect(counted.object).toBe('response.input_tokens')
      expect(counted.input_tokens).toBeGreaterThan(5)
      expect(counted.input_tokens).toBeLessThan(60)
      const longer = await client.responses.inputTokens.count({ model, input: 'word '.repeat(1_000) })
      expect(longer.input_tokens).toBeGreaterThan(1_000)
      expect([spent(), rows()]).toEqual(before)
      if (model === 'chat') expect(fixture.upstream.received(model)).toHaveLength(0)
    },
  )

  test('the error of an upstream that fails to count is passed on where the gateway cannot count either', async () => {
    fixture.upstream.script('native', { kind: 'status', status: 503, body: errorBody('busy') })
    const { status, text } = await post('input_tokens', { model: 'native', conversation: 'conv_1' })
    expect([status, text]).toEqual([503, expect.stringContaining('busy')])
  })

  test('counting the tokens of an input is a 400 if it refers to an unknown conversation or response, or is invalid', async () => {
    const referring = await post('input_tokens', { model: 'chat', conversation: 'conv_1' })
    expect(referring.status).toBe(400)
    expect(referring.json().error.message).toContain(`Invalid 'conversation': expected all items`)
    const unknown = await post('input_tokens', { model: 'native', previous_response_id: 'resp_1' })
    expect([unknown.status, unknown.json().error.code]).toEqual([400, 'previous_response_not_found'])
    expect((await post('input_tokens', { model: 'chat', input: 5 })).status).toBe(400)
    expect((await post('input_tokens', {})).status).toBe(400)
  })
})

describe('compacting a conversation', () => {
  const COMPACTED = JSON.stringify({
    id: 'resp_c',
    object: 'response.compaction',
    created_at: 7,
    output: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'word '.repeat(5_000) }] },
      { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAA' },
    ],
    usage: JSON.parse(responsesUsage(1_000, 200, 400)),
  })

  test('a conversation is compacted by a responses upstream, byte for byte except its id, and charged by its usage', async () => {
    fixture.upstream.script('native', { kind: 'whole', body: COMPACTED })
    const before = spent()
    const body = '{"model":"native",  "input":"hi","x_new":9007199254740993}'
    const answer = await fixture.chat('ann', body, { path: '/v1/responses/compact' })
    const { id } = answer.json()
    expect(id).toMatch(/^resp_[0-9a-f]{44}$/)
    expect(answer.text).toBe(COMPACTED.replace('resp_c', id))
    expect(fixture.upstream.only('native').path).toBe('/v1/responses/compact')
    expect(fixture.upstream.only('native').text).toBe(body)
    expect(spent() - before).toBe(600 + 400 / 4 + 200 * 4)
  })

  test('a conversation that the OpenAI client compacts is sent with the mapped model name, and no fields are added', async () => {
    fixture.upstream.script('mapped', { kind: 'whole', body: COMPACTED })
    const compacted = await client.responses.compact({ model: 'mapped', input: 'hi' })
    expect(compacted.output).toHaveLength(2)
    expect(JSON.parse(fixture.upstream.only('mapped').text)).toEqual({ model: 'their-name', input: 'hi' })
  })

  test('compacting a conversation skips channels that do not support it', async () => {
    fixture.upstream.script('second', { kind: 'whole', body: COMPACTED })
    expect((await post('compact', { model: 'both' })).status).toBe(200)
    expect(fixture.upstream.received('first')).toHaveLength(0)
  })

  test('compacting a conversation is charged for the prompt only, where the upstream reports no usage', async () => {
    const { usage: _, ...without } = JSON.parse(COMPACTED)
    fixture.upstream.script('native', { kind: 'whole', body: JSON.stringify(without) })
    const before = spent()
    expect((await post('compact', { model: 'native' })).status).toBe(200)
    expect(spent() - before).toBeGreaterThan(0)
    expect(spent() - before).toBeLessThan(100)
  })

  test('compacting a conversation is refused with 403 before the upstream is called, if the key cannot pay', async () => {
    fixture.upstream.script('native', { kind: 'whole', body: COMPACTED })
    const answer = await post('compact', { model: 'native' }, 'poor')
    expect(answer.status).toBe(403)
    expect(answer.json().error.code).toBe('insufficient_quota')
    expect(fixture.upstream.received('native')).toHaveLength(0)
  })

  test('compacting a conversation is a 404 where no channel speaks responses, and a 400 where a stream is requested', async () => {
    const before = [spent(), rows()]
    const answer = await post('compact', { model: 'chat' })
    expect(answer.status).toBe(404)
    expect(answer.json().error).toMatchObject({ type: 'invalid_request_error', code: 'not_found' })
    expect((await post('compact', { model: 'native', stream: true })).status).toBe(400)
    expect([spent(), rows()]).toEqual(before)
  })

  test('compacting a conversation is a 404 where the upstream lacks the endpoint, and the model stays in use', async () => {
    fixture.upstream.script('native', {
      kind: 'status',
      status: 404,
      body: '{"error":{"message":"no path"}}',
    })
    expect((await post('compact', { model: 'native' })).status).toBe(404)
    fixture.upstream.script('native', wholeResponse({ text: 'said' }))
    const answer = await fixture.chat('ann', { model: 'native', input: 'hi' }, { path: '/v1/responses' })
    expect(answer.status).toBe(200)
  })
})

test("upstream headers about the operator's account are not passed on to clients of the responses API", async () => {
  fixture.upstream.script('native', {
    ...wholeResponse({ text: 'said' }),
    headers: { 'x-codex-primary-used-percent': '93', 'x-codex-turn-state': 'theirs', 'x-models-etag': 'e' },
  })
  const { headers } = await fixture.chat('ann', { model: 'native', input: 'hi' }, { path: '/v1/responses' })
  expect(
    Object.keys(headers).filter((name) => name.startsWith('x-codex') || name === 'x-models-etag'),
  ).toEqual([])
})
