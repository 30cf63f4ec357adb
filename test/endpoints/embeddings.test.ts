import { createOpenAI } from '@ai-sdk/openai'
import { embedMany } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { type Body, call, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: {
      ...Object.fromEntries(['m', 'pair', 'claude'].map((name) => [name, { price: PLAIN_PRICE }])),
      percall: { price: { request: 0.002 } },
    },
    channels: [
      channel('m', upstream.baseUrl('m'), { models: ['m', 'percall', 'text-moderation-x'] }),
      channel('pair', upstream.baseUrl('pair'), { priority: 5 }),
      channel('spare', upstream.baseUrl('spare'), { models: ['pair'], model_mapping: { pair: 'theirs' } }),
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 3 })])],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const post = (path: string, body: Body, key = 'ann'): Promise<FullResponse> =>
  call(fixture.gateway.url, body, { key, path })

const embed = (body: Body, key?: string): Promise<FullResponse> => post('/v1/embeddings', body, key)

const json = (value: unknown): Behaviour => ({ kind: 'whole', body: JSON.stringify(value) })

const openai = (): OpenAI =>
  new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })

const vectors = (embeddings: readonly unknown[], usage: unknown = { prompt_tokens: 9, total_tokens: 9 }) => ({
  object: 'list',
  data: embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  model: 'theirs',
  ...(usage !== null && { usage }),
})

/** The usage row of a call, once its hold is released. */
function rowOf(answer: FullResponse): UsageRow {
  const row = database.usageOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error(`no usage row for ${answer.status} ${answer.text.slice(0, 300)}`)
  return row
}

describe('embeddings', () => {
  test.each([{}, { model: null }, { model: '' }])(
    'an embeddings request without a valid model is refused with 400: %j',
    async (fields) => {
      const answer = await embed({ input: 'hi', ...fields })
      expect(answer.status).toBe(400)
      expect(answer.json().error).toMatchObject({ type: 'invalid_request_error' })
      expect(answer.json().error.message).toContain("'model'")
    },
  )

  test.each([
    ['a text', 'hi'],
    ['texts', ['hi', 'ho']],
    ['token ids', [1, 2, 3]],
    ['lists of token ids', [[1, 2], [3]]],
  ])('embeddings of %s are forwarded byte for byte, the request and the response', async (_, input) => {
    const answer = JSON.stringify(vectors([[0.1, -2e-9]]), null, 2)
    fixture.upstream.script('m', { kind: 'whole', body: answer })
    const body = `{"input" : ${JSON.stringify(input)}, "model":"m","dimensions":2, "user": "é\\u0041", "seed":12345678901234567890}`
    const response = await embed(body)
    expect(response.text).toBe(answer)
    expect(fixture.upstream.only('m')).toMatchObject({ path: '/v1/embeddings', text: body })
    expect(rowOf(response)).toMatchObject({
      quota: 9,
      input_tokens: 9,
      reason: 'complete',
      kind: 'embeddings',
    })
  })

  test('embeddings reach the client in the encoding_format that it requested', async () => {
    const base64 = Buffer.from(new Float32Array([0.5, -2]).buffer).toString('base64')
    fixture.upstream.script('m', json(vectors([[0.5, -2]])), json(vectors([base64])))
    const encoded = await embed({ model: 'm', input: 'a', encoding_format: 'base64' })
    expect(JSON.parse(encoded.text)).toMatchObject({ data: [{ embedding: base64 }] })
    const decoded = await embed({ model: 'm', input: 'a' })
    expect(JSON.parse(decoded.text)).toMatchObject({ data: [{ embedding: [0.5, -2] }] })
  })

  test.each([
    ['texts', ['one two three', 'four five'], 6],
    [
      'token ids',
      [
        [1, 2],
        [3, 4, 5],
      ],
      5,
    ],
  ])(
    'embeddings of %s are charged by counted tokens where no usage is reported',
    async (_, input, tokens) => {
      fixture.upstream.script('m', json(vectors([[1], [2]], null)))
      const row = rowOf(await embed({ model: 'm', input }))
      expect(row).toMatchObject({ reason: 'estimated', quota: row.input_tokens })
      expect(Math.abs(row.input_tokens - tokens)).toBeLessThanOrEqual(1)
    },
  )

  test('an embeddings request costs the price per call if its model has such a price', async () => {
    fixture.upstream.script('m', json(vectors([[1]])))
    expect(rowOf(await embed({ model: 'percall', input: 'a' }))).toMatchObject({
      quota: 1000,
      reason: 'complete',
    })
  })

  test.each<[string, Behaviour]>([
    ['an error', { kind: 'status', status: 500, body: '{}' }],
    ['an error with status 200', json({ error: { message: 'no' } })],
    ['something else', json({ hello: 1 })],
    [
      'half an answer',
      {
        kind: 'raw',
        bytes: 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"data":',
        ending: 'close',
      },
    ],
    ['no connection', { kind: 'drop' }],
  ])('an embeddings request goes to the next channel after %s', async (_, failure) => {
    fixture.upstream.script('pair', failure)
    fixture.upstream.script('spare', json(vectors([[1]])))
    const answer = await embed({ model: 'pair', input: 'a' })
    expect(answer.status).toBe(200)
    expect(fixture.upstream.only('spare').text).toBe('{"model":"theirs","input":"a"}')
    expect(rowOf(answer)).toMatchObject({ quota: 9 })
  })

  test('an embeddings request whose client leaves is charged for its prompt', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('m', { ...json(vectors([[1]])), after: release.promise })
    const rows = database.usage().length
    const leaving = new AbortController()
    const asked = openai().embeddings.create(
      { model: 'm', input: 'one two three' },
      { signal: leaving.signal },
    )
    await fixture.upstream.receivedAtLeast('m', 1)
    leaving.abort()
    await expect(asked).rejects.toThrow()
    await expect.poll(() => database.usage().length).toBe(rows + 1)
    release.resolve()
    expect(database.usage().find(({ reason }) => reason === 'client_gone')).toMatchObject({
      model: 'm',
      quota: 3,
      kind: 'embeddings',
    })
  })

  test('an embeddings request that could cost more than the quota of its key is refused with 403', async () => {
    const answer = await embed(
      { model: 'm', input: 'a long text, longer than three tokens at least' },
      'poor',
    )
    expect(answer.status).toBe(403)
    expect(answer.json().error.code).toBe('insufficient_quota')
  })

  test.each([
    [{ input: '' }, 400, 'invalid_request'],
    [{ input: [] }, 400, 'invalid_request'],
    [{ input: ['a', ''] }, 400, 'invalid_request'],
    [{ input: Array.from({ length: 3000 }, () => 'a') }, 400, 'invalid_request'],
    [{ input: [1, 2.5] }, 400, 'invalid_request'],
    [{}, 400, 'invalid_request'],
    [{ model: 'claude', input: 'a' }, 400, 'unsupported_endpoint'],
    [{ model: 'unknown', input: 'a' }, 503, 'model_not_found'],
  ])('invalid embeddings requests are refused: %j', async (fields, status, code) => {
    const answer = await embed({ model: 'm', ...fields })
    expect([answer.status, answer.json().error.code]).toEqual([status, code])
    expect(answer.headers['x-should-retry']).toBe('false')
  })

  test('the refusal of an embeddings request for a model without embeddings names the endpoints that the model supports', async () => {
    const { error } = (await embed({ model: 'claude', input: 'a' })).json()
    expect(error.message).toContain('it supports chat, messages, responses, gemini, completions')
  })
})

describe('official clients', () => {
  test.each([
    ['ignores the encoding', [0.5, -2]],
    ['follows it', Buffer.from(new Float32Array([0.5, -2]).buffer).toString('base64')],
  ])('the OpenAI client gets embedding vectors from an upstream that %s', async (_, embedding) => {
    fixture.upstream.script('m', json(vectors([embedding])))
    const { data, usage } = await openai().embeddings.create({ model: 'm', input: ['a'] })
    expect(data[0]?.embedding).toEqual([0.5, -2])
    expect(usage.prompt_tokens).toBe(9)
    expect(fixture.upstream.only('m').text).toContain('"encoding_format":"base64"')
  })

  test('the AI SDK gets embedding vectors through the gateway', async () => {
    fixture.upstream.script('m', json(vectors([[0.5], [1]])))
    const provider = createOpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1` })
    const { embeddings, usage } = await embedMany({ model: provider.embedding('m'), values: ['a', 'b'] })
    expect(embeddings).toEqual([[0.5], [1]])
    expect(usage.tokens).toBe(9)
  })

  test('the OpenAI client gets moderations through the gateway', async () => {
    fixture.upstream.script('m', json({ id: 'modr-1', model: 'x', results: [{ flagged: true }] }))
    const { results } = await openai().moderations.create({ model: 'text-moderation-x', input: 'a' })
    expect(results[0]?.flagged).toBe(true)
  })

  test('the OpenAI client gets legacy completions, whole and streamed', async () => {
    const choices = [{ text: ' there', index: 0, logprobs: null, finish_reason: 'stop' }]
    const whole = { id: 'cmpl-1', object: 'text_completion', created: 1, model: 'x', choices }
    fixture.upstream.script(
      'm',
      json({ ...whole, usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }),
    )
    const { choices: got } = await openai().completions.create({ model: 'm', prompt: 'hi' })
    expect(got[0]?.text).toBe(' there')
    const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    fixture.upstream.script('m', {
      kind: 'stream',
      frames: [frame(whole), frame({ ...whole, choices: [], usage }), 'data: [DONE]\n\n'],
    })
    const stream = await openai().completions.create({ model: 'm', prompt: 'hi', stream: true })
    let text = ''
    for await (const chunk of stream) text += chunk.choices[0]?.text
    expect(text).toBe(' there')
    expect(fixture.upstream.only('m').text).toContain('"include_usage":true')
  })
})

describe('moderations', () => {
  test('moderations are free where the model has no price, and are forwarded byte for byte', async () => {
    const body = '{"input": ["a", {"type":"text","text":"b"}], "model":"text-moderation-x"}'
    fixture.upstream.script('m', json({ id: 'modr-1', results: [{ flagged: false }] }))
    const answer = await post('/v1/moderations', body)
    expect(fixture.upstream.only('m')).toMatchObject({ path: '/v1/moderations', text: body })
    expect(rowOf(answer)).toMatchObject({ quota: 0, kind: 'moderations' })
  })

  test.each([{}, { input: [] }, { input: 7 }, { input: [7] }])(
    'invalid moderations requests are refused: %j',
    async (fields) => {
      const answer = await post('/v1/moderations', { model: 'text-moderation-x', ...fields })
      expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_request'])
    },
  )
})

describe('completions', () => {
  const whole = {
    id: 'cmpl-1',
    object: 'text_completion',
    choices: [{ text: 'one two three', index: 0, logprobs: null, finish_reason: 'stop' }],
  }

  test.each([['a'], [['a', 'b']], [[1, 2]], [[[1], [2, 3]]]])(
    'legacy completions with the prompt %j are forwarded byte for byte',
    async (prompt) => {
      const answer = JSON.stringify({ ...whole, usage: { prompt_tokens: 3, completion_tokens: 2 } })
      fixture.upstream.script('m', { kind: 'whole', body: answer })
      const body = `{"prompt": ${JSON.stringify(prompt)}, "model":"m", "echo":true,"logprobs":2, "best_of": 3}`
      const response = await post('/v1/completions', body)
      expect(response.text).toBe(answer)
      expect(fixture.upstream.only('m')).toMatchObject({ path: '/v1/completions', text: body })
      expect(rowOf(response)).toMatchObject({ quota: 11, kind: 'completions' })
    },
  )

  test('max_tokens of -1 means no maximum in legacy completions, forwarded and converted', async () => {
    const fields = { prompt: 'one two', max_tokens: -1 }
    fixture.upstream.script('m', json(whole))
    expect((await post('/v1/completions', { model: 'm', ...fields })).status).toBe(200)
    expect(JSON.parse(fixture.upstream.only('m').text)).toMatchObject({ max_tokens: -1 })
    fixture.upstream.script('claude', json({ type: 'message', content: [], stop_reason: 'end_turn' }))
    expect((await post('/v1/completions', { model: 'claude', ...fields })).status).toBe(200)
    // What Anthropic gets if a chat request has no maximum either.
    expect(JSON.parse(fixture.upstream.only('claude').text)).toMatchObject({ max_tokens: 8192 })
  })

  test('legacy completions are charged by counted tokens where no usage is reported', async () => {
    fixture.upstream.script('m', json(whole))
    const row = rowOf(await post('/v1/completions', { model: 'm', prompt: 'one two' }))
    expect(row).toMatchObject({ input_tokens: 2, output_tokens: 3, reason: 'estimated' })
  })

  test('legacy completions are converted for channels that only serve conversations', async () => {
    fixture.upstream.script(
      'claude',
      json({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'claude',
        content: [{ type: 'text', text: 'there' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 3, output_tokens: 2 },
      }),
    )
    const answer = await post('/v1/completions', {
      model: 'claude',
      prompt: ['hi'],
      max_tokens: 7,
      stop: 'x',
    })
    expect(JSON.parse(answer.text)).toMatchObject({
      object: 'text_completion',
      choices: [{ text: 'there', index: 0, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    })
    expect(JSON.parse(fixture.upstream.only('claude').text)).toMatchObject({
      max_tokens: 7,
      messages: [{ role: 'user' }],
      stop_sequences: ['x'],
    })
    expect(rowOf(answer)).toMatchObject({ quota: 11, kind: 'completions' })
  })

  test.each([
    ['echo', { echo: true }],
    ['suffix', { suffix: 'b' }],
    ['best_of', { best_of: 2 }],
    ['logprobs', { logprobs: 0 }],
    ['prompt', { prompt: ['a', 'b'] }],
    ['prompt', { prompt: [1, 2] }],
  ])(
    'legacy completions that a conversation cannot express are a 400 before quota is held, naming %s: %j',
    async (field, fields) => {
      const answer = await post('/v1/completions', { model: 'claude', prompt: 'a', ...fields }, 'poor')
      expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_request'])
      expect(answer.json().error.message).toContain(`'${field}'`)
    },
  )

  test('requests to the completions endpoint with messages are served as chat completions', async () => {
    fixture.upstream.script('m', {
      kind: 'whole',
      content: 'hello',
      usage: '{"prompt_tokens":1,"completion_tokens":1}',
    })
    const answer = await post('/v1/completions', { model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    expect(answer.json().choices[0]?.message.content).toBe('hello')
    expect(fixture.upstream.only('m').path).toBe('/v1/chat/completions')
  })
})
