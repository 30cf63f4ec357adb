import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { GoogleGenAI } from '@google/genai'
import { embedMany } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'

const EMBEDDING = 'gemini-embedding-001'

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: Object.fromEntries(
      [EMBEDDING, 'mapped', 'pair', 'chat', 'both', 'text-embedding-3-small'].map((name) => [
        name,
        { price: PLAIN_PRICE },
      ]),
    ),
    channels: [
      channel('gemini', upstream.baseUrl('gemini'), {
        protocol: 'gemini',
        models: [EMBEDDING, 'mapped'],
        model_mapping: { mapped: EMBEDDING },
      }),
      channel('first', upstream.baseUrl('first'), { protocol: 'gemini', models: ['pair'], priority: 5 }),
      channel('ahead', upstream.baseUrl('ahead'), { protocol: 'gemini', models: ['both'], priority: 5 }),
      channel('second', upstream.baseUrl('second'), { protocol: 'gemini', models: ['pair'] }),
      channel('either', upstream.baseUrl('either'), { models: ['both', 'text-embedding-3-small'] }),
      channel('chat', upstream.baseUrl('chat'), { model_mapping: { chat: 'theirs' } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })])],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const post = (path: string, body: object | string, key = 'ann'): Promise<FullResponse> =>
  call(fixture.gateway.url, body, { key, path })
const embed = (fields: object, key?: string): Promise<FullResponse> =>
  post('/v1/embeddings', { model: EMBEDDING, ...fields }, key)
const method = (model: string, name: string, body: object | string): Promise<FullResponse> =>
  post(`/v1beta/models/${model}:${name}`, body)

const json = (value: unknown): Behaviour => ({ kind: 'whole', body: JSON.stringify(value) })
const BAD_UPSTREAM: Behaviour = { kind: 'status', status: 500, body: '{}' }

interface Batch {
  readonly requests: readonly { readonly content: { readonly parts: readonly { readonly text: string }[] } }[]
}

/** Answers each text, which is a number, with a vector that begins with this number. */
const byText =
  (usage?: object) =>
  ({ text }: Received): Behaviour => {
    const { requests } = JSON.parse(text) as Batch
    const embeddings = requests.map(({ content }) => ({ values: [Number(content.parts[0]?.text), 0.5] }))
    return json({ embeddings, usageMetadata: usage })
  }

/** The usage row of a call. */
function rowOf(answer: FullResponse): UsageRow {
  const row = database.usageOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error(`no usage row for ${answer.status} ${answer.text.slice(0, 300)}`)
  return row
}

const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index))

/** Tokens that the model takes of each text, by the price data. */
const CONTEXT = 2_048
const LONG = 'hello '.repeat(20_000)
const part = (text: string): object => ({ content: { parts: [{ text }] } })

/** What a call of a key that cannot pay for it would hold. */
async function heldBy(path: string, body: object): Promise<number> {
  const { status, text } = await post(path, body, 'poor')
  expect(status, text).toBe(403)
  return Number(/(\d+) are needed/.exec(text)?.[1])
}

describe('each text to embed holds the context of the model at most', () => {
  const openAi = (input: unknown, model = EMBEDDING): Promise<number> =>
    heldBy('/v1/embeddings', { model, input })
  const gemini = (name: string, body: object): Promise<number> =>
    heldBy(`/v1beta/models/${EMBEDDING}:${name}`, body)
  test.each<[string, () => Promise<number>, number]>([
    ['a text', () => openAi(LONG), 1],
    // This model takes 8,192 tokens.
    [
      'token ids',
      () =>
        openAi(
          Array.from({ length: 20_000 }, () => 7),
          'text-embedding-3-small',
        ),
      4,
    ],
    ['a long text among others', () => openAi([LONG, ...numbers(50)]), 1],
    ['long texts', () => openAi([LONG, LONG, LONG]), 3],
    ['a content', () => gemini('embedContent', part(LONG)), 1],
    ['contents', () => gemini('batchEmbedContents', { requests: [part(LONG), part(LONG), part('hi')] }), 2],
  ])('%s', async (_, held, long) => {
    const most = await held()
    expect(most).toBeGreaterThanOrEqual(long * CONTEXT)
    // The short texts, and the syntax around all of them.
    expect(most).toBeLessThan((long + 0.9) * CONTEXT)
  })

  test('and is counted as no more where the provider reports no usage', async () => {
    fixture.upstream.decide('gemini', byText())
    const row = rowOf(await embed({ input: LONG }))
    expect(row.reason).toBe('estimated')
    expect(row.input_tokens).toBeGreaterThanOrEqual(CONTEXT)
    expect(row.input_tokens).toBeLessThan(2 * CONTEXT)
  })
})

describe('embeddings on a channel of Gemini', () => {
  test('an embeddings request on a Gemini channel is sent as a batch of texts, and gets a list of vectors', async () => {
    fixture.upstream.decide('gemini', byText({ promptTokenCount: 7 }))
    const answer = await embed({ input: ['1', '2'], dimensions: 2, task_type: 'CLUSTERING', user: 'x' })
    expect(answer.json()).toEqual({
      object: 'list',
      data: [1, 2].map((one, index) => ({ object: 'embedding', index, embedding: [one, 0.5] })),
      model: EMBEDDING,
      usage: { prompt_tokens: 7, total_tokens: 7 },
    })
    expect(answer.headers['x-gateway-dropped']).toBe('user')
    const { path, text } = fixture.upstream.only('gemini')
    expect(path).toBe(`/v1/models/${EMBEDDING}:batchEmbedContents`)
    expect(JSON.parse(text)).toEqual({
      requests: ['1', '2'].map((one) => ({
        model: `models/${EMBEDDING}`,
        content: { parts: [{ text: one }] },
        taskType: 'CLUSTERING',
        outputDimensionality: 2,
      })),
    })
    expect(rowOf(answer)).toMatchObject({ kind: 'embeddings', quota: 7, reason: 'complete' })
  })

  test('more than 100 texts are sent to Gemini in several batches, in order, and charged together', async () => {
    fixture.upstream.decide('gemini', byText({ promptTokenCount: 7 }))
    const answer = await embed({ input: numbers(230) })
    const { data, usage } = JSON.parse(answer.text) as { data: { embedding: number[] }[]; usage: object }
    expect(data.map(({ embedding }) => embedding[0])).toEqual(numbers(230).map(Number))
    expect(usage).toMatchObject({ prompt_tokens: 21 })
    const sizes = fixture.upstream
      .received('gemini')
      .map(({ text }) => (JSON.parse(text) as Batch).requests.length)
    expect(sizes).toEqual([100, 100, 30])
    expect(rowOf(answer)).toMatchObject({ quota: 21, reason: 'complete' })
  })

  test.each<[string, Behaviour]>([
    ['fails', BAD_UPSTREAM],
    ['has too few vectors', json({ embeddings: [{ values: [1] }] })],
    ['has no vectors', json({ hello: 1 })],
  ])(
    'an embeddings request on a Gemini channel goes to the next channel as a whole if a later batch %s',
    async (_, failure) => {
      const answering = byText({ promptTokenCount: 7 })
      fixture.upstream.decide('first', (received) =>
        received.text.includes('"150"') ? failure : answering(received),
      )
      fixture.upstream.decide('second', answering)
      const answer = await embed({ model: 'pair', input: numbers(151) })
      expect(answer.status).toBe(200)
      expect(fixture.upstream.received('second')).toHaveLength(2)
      expect(rowOf(answer)).toMatchObject({ quota: 14 })
    },
  )

  test('embeddings on a Gemini channel are charged by counted tokens where no usage is reported', async () => {
    fixture.upstream.decide('gemini', byText())
    const answer = await embed({ input: ['1', '2', '3'] })
    const row = rowOf(answer)
    expect(row).toMatchObject({ reason: 'estimated', quota: row.input_tokens })
    expect(answer.json()).toMatchObject({ usage: { prompt_tokens: row.input_tokens } })
    expect(Math.abs(row.input_tokens - 3)).toBeLessThanOrEqual(2)
  })

  test.each([
    ['token ids', [1, 2]],
    ['lists of token ids', [[1], [2]]],
    ['images', [{ image: 'data:' }]],
  ])(
    'embeddings of %s on a Gemini channel are refused with 400 before quota is held, even for a key that cannot pay',
    async (_, input) => {
      fixture.upstream.decide('gemini', byText())
      expect((await embed({ input: 'two words' }, 'poor')).status).toBe(403)
      const answer = await embed({ input }, 'poor')
      expect(answer.status).toBe(400)
      expect(answer.json().error).toMatchObject({ code: 'invalid_request' })
      expect(answer.json().error.message).toContain('input')
      expect(fixture.upstream.received('gemini')).toEqual([])
    },
  )

  test('embeddings of token ids are served by the channel that supports them, even if another channel precedes it', async () => {
    const vectors = { object: 'list', data: [{ index: 0, embedding: [1] }], usage: { total_tokens: 2 } }
    fixture.upstream.script('either', json(vectors))
    const answer = await embed({ model: 'both', input: [1, 2] })
    expect(answer.json()).toEqual(vectors)
    expect(fixture.upstream.received('ahead')).toEqual([])
    expect(rowOf(answer)).toMatchObject({ channel: 'either', quota: 2 })
  })

  test('the official OpenAI client, which reads base64, gets embeddings from a Gemini channel', async () => {
    fixture.upstream.decide('gemini', byText())
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
    const { data } = await client.embeddings.create({ model: EMBEDDING, input: ['4'] })
    expect(data[0]?.embedding).toEqual([4, 0.5])
  })
})

describe('embeddings of a Gemini client', () => {
  test.each([
    ['embedContent', '{"content": {"parts":[{"text":"1"}]},"x":1.0}', '{ "embedding":{"values":[1e0]} }'],
    [
      'batchEmbedContents',
      '{"requests":[ {"content":{"parts":[{"text":"1"}]}}],"x":1.0}',
      '{ "embeddings":[{"values":[1e0]}] }',
    ],
  ])(
    'embeddings of a Gemini client are forwarded byte for byte, the request and the response: %s',
    async (name, body, response) => {
      fixture.upstream.script('gemini', { kind: 'whole', body: response })
      const answer = await method(EMBEDDING, name, body)
      expect(answer.text).toBe(response)
      expect(fixture.upstream.only('gemini')).toMatchObject({
        path: `/v1/models/${EMBEDDING}:${name}`,
        text: body,
      })
      expect(rowOf(answer)).toMatchObject({ kind: 'embeddings', reason: 'estimated' })
    },
  )

  test("embeddings of a Gemini client are charged by the upstream's usage, and each request of the batch has the mapped model name", async () => {
    fixture.upstream.script(
      'gemini',
      json({ embeddings: [{ values: [1] }], usageMetadata: { promptTokenCount: 8 } }),
    )
    const request = (model: string): string =>
      `{"model":"models/${model}" ,"content":{"parts":[{"text":"1"}]},"x":1.0}`
    const answer = await method('mapped', 'batchEmbedContents', `{"requests":[${request('mapped')}]}`)
    expect(fixture.upstream.only('gemini').text).toBe(`{"requests":[${request(EMBEDDING)}]}`)
    expect(rowOf(answer)).toMatchObject({ quota: 8, reason: 'complete' })
  })

  test('embeddings that a chat channel returns in any order, as numbers or base64, reach a Gemini client in order as numbers', async () => {
    const base64 = Buffer.from(new Float32Array([0.25]).buffer).toString('base64')
    const data = [
      { object: 'embedding', index: 1, embedding: [0.5] },
      { object: 'embedding', index: 0, embedding: base64 },
    ]
    fixture.upstream.script(
      'chat',
      json({ object: 'list', data, usage: { prompt_tokens: 3, total_tokens: 3 } }),
    )
    const requests = ['a', 'b'].map((text) => ({
      content: { parts: [{ text }] },
      taskType: 'CLUSTERING',
      outputDimensionality: 1,
    }))
    const answer = await method('chat', 'batchEmbedContents', { requests })
    expect(answer.json()).toEqual({
      embeddings: [{ values: [0.25] }, { values: [0.5] }],
      usageMetadata: { promptTokenCount: 3, totalTokenCount: 3 },
    })
    expect(answer.headers['x-gateway-dropped']).toBe('taskType')
    expect(JSON.parse(fixture.upstream.only('chat').text)).toEqual({
      model: 'theirs',
      input: ['a', 'b'],
      dimensions: 1,
      encoding_format: 'float',
    })
    fixture.upstream.script('chat', json({ data: [{ embedding: [0.5] }] }))
    const one = await method('chat', 'embedContent', { content: { parts: { text: 'a' } } })
    expect(one.json()).toMatchObject({ embedding: { values: [0.5] } })
  })

  test.each([
    [EMBEDDING, 'embedContent', {}, 'content'],
    [EMBEDDING, 'batchEmbedContents', { requests: [] }, 'requests'],
    [EMBEDDING, 'batchEmbedContents', { requests: [{}] }, 'requests[0].content'],
    [EMBEDDING, 'batchEmbedContents', { requests: {} }, 'requests'],
    ['chat', 'embedContent', { content: { parts: [] } }, 'content'],
    ['chat', 'embedContent', { content: { parts: [{ inlineData: {} }] } }, 'content.parts[0]'],
    [
      'chat',
      'batchEmbedContents',
      {
        requests: [1, 2].map((outputDimensionality) => ({
          content: { parts: [{ text: 'a' }] },
          outputDimensionality,
        })),
      },
      'requests[1].outputDimensionality',
    ],
  ])(
    "a wrong embeddings request of a Gemini client gets Google's error: %s %s %j",
    async (model, name, body, field) => {
      const answer = await method(model, name, body)
      expect(answer.status).toBe(400)
      expect(answer.json().error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
      expect(answer.json().error.message).toContain(`'${field}'`)
    },
  )

  test.each([EMBEDDING, 'chat'])(
    'the official Google client and the AI SDK get embeddings: %s',
    async (model) => {
      fixture.upstream.decide('gemini', byText())
      const data = [{ embedding: [1, 0.5] }, { embedding: [2, 0.5] }]
      fixture.upstream.decide('chat', () => json({ data }))
      const google = new GoogleGenAI({ apiKey: 'sk-ann', httpOptions: { baseUrl: fixture.gateway.url } })
      const { embeddings } = await google.models.embedContent({ model, contents: ['1', '2'] })
      expect(embeddings?.map(({ values }) => values)).toEqual([
        [1, 0.5],
        [2, 0.5],
      ])
      const provider = createGoogleGenerativeAI({
        apiKey: 'sk-ann',
        baseURL: `${fixture.gateway.url}/v1beta`,
      })
      const embedded = await embedMany({ model: provider.embedding(model), values: ['1', '2'] })
      expect(embedded.embeddings).toEqual([
        [1, 0.5],
        [2, 0.5],
      ])
    },
  )

  test('a Gemini client finds the embeddings endpoint in the list of models', async () => {
    const { text } = await call(fixture.gateway.url, undefined, {
      key: 'ann',
      path: '/v1/models',
      method: 'GET',
    })
    const { data } = JSON.parse(text) as { data: { id: string; endpoints: string[] }[] }
    expect(data.find(({ id }) => id === EMBEDDING)?.endpoints).toEqual(['embeddings'])
  })
})
