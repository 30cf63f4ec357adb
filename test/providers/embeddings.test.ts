import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, type FullResponse, open, send } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ACCOUNT, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import type { Double, DoubleAnswer, ReceivedByDouble } from '../fixtures/providers/double.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'

const ON_BEDROCK = {
  titan: 'amazon.titan-embed-text-v2:0',
  cohere: 'cohere.embed-multilingual-v3',
  'cohere-v4': 'eu.cohere.embed-v4:0',
}
const ON_VERTEX = ['text-embedding-005', 'gemini-embedding-001', 'gemini-embedding-2']

let bedrock: Double
let vertex: VertexDouble
let gateway: RunningGateway
/** The number of requests after which Bedrock fails. */
let failsAfter = Number.POSITIVE_INFINITY
/** The number of dimensions of a vector by Vertex, what it does after one, and texts that it never answers, or with an error. */
let dimensions = 2
let afterVectors = (): void => {}
const NEVER = 'wait'
const FAILING = 'one that fails'

beforeAll(async () => {
  bedrock = await startBedrock(() =>
    bedrock.received.length > failsAfter
      ? { error: { status: 500, name: 'InternalServerException', message: 'broken' } }
      : {},
  )
  vertex = await startVertex(vectorsOf)
  gateway = await startGateway({
    config: {
      options: { media: { allow_private_networks: true } },
      models: priced([...Object.keys(ON_BEDROCK), ...ON_VERTEX, 'nova']),
      channels: [
        {
          name: 'bedrock',
          provider: 'bedrock',
          protocol: 'converse',
          region: REGION,
          base_url: bedrock.url,
          keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`],
          models: [...Object.keys(ON_BEDROCK), 'nova'],
          model_mapping: ON_BEDROCK,
        },
        {
          name: 'vertex',
          provider: 'vertex',
          protocol: 'gemini',
          location: 'europe-west4',
          base_url: vertex.url,
          keys: [vertex.serviceAccount],
          models: ON_VERTEX,
        },
      ],
      users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await bedrock?.close()
  await vertex?.close()
})
beforeEach(() => {
  failsAfter = Number.POSITIVE_INFINITY
  dimensions = 2
  afterVectors = () => {}
  bedrock.received.length = 0
  vertex.received.length = 0
})

/** Responds as Vertex does: by `:predict`, or by the method of its newer models. */
function vectorsOf({ path, body }: ReceivedByDouble): DoubleAnswer | Promise<DoubleAnswer> {
  const sent = JSON.parse(body.toString())
  if (path.endsWith(':embedContent')) {
    const [{ text }] = sent.content.parts
    const usageMetadata = { promptTokenCount: text.split(' ').length }
    if (text === NEVER) return new Promise(() => {})
    afterVectors()
    return { body: JSON.stringify({ embedding: { values: [text.length, 0.5] }, usageMetadata }) }
  }
  const { instances } = sent as { instances: { content: string }[] }
  if (!path.endsWith(':predict') || (path.includes('gemini-embedding') && instances.length > 1))
    return {
      status: 400,
      body: '{"error":{"code":400,"message":"only one instance","status":"INVALID_ARGUMENT"}}',
    }
  if (instances.some(({ content }) => content === FAILING))
    return { status: 500, body: '{"error":{"code":500,"message":"broken"}}' }
  const predictions = instances.map(({ content }) => ({
    embeddings: {
      values: [content.length, ...Array.from({ length: dimensions - 1 }, () => 0.5)],
      statistics: { truncated: false, token_count: content.split(' ').length },
    },
  }))
  return { body: JSON.stringify({ predictions }) }
}

function embed(model: string, input: string | readonly string[], fields: object = {}): Promise<FullResponse> {
  return call(gateway.url, { model, input, ...fields }, EMBEDDINGS)
}

function charged({ headers }: FullResponse): number | undefined {
  return databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))?.input_tokens
}

const bodies = ({ received }: Double) =>
  received
    .filter(({ path }) => path !== '/token')
    .map(({ body }) => JSON.parse(body.toString()) as { readonly texts?: readonly string[] })

/** The vectors of a response. */
function vectorsIn({ text }: FullResponse): readonly (readonly number[])[] {
  const { data } = JSON.parse(text) as { data: { embedding: number[] }[] }
  return data.map(({ embedding }) => embedding)
}

const EMBEDDINGS = { key: 'ann', path: '/v1/embeddings' }
const TEXTS = ['a b', 'ccc', 'dd e f']

describe.each([
  ['titan', 3],
  ['cohere', 1],
  ['cohere-v4', 1],
  ['text-embedding-005', 1],
  ['gemini-embedding-001', 3],
  ['gemini-embedding-2', 3],
])('a channel of a provider serves embeddings: %s', (model, requests) => {
  test('embeddings of several texts come in their order, from as many upstream requests as needed, and are charged once', async () => {
    const response = await embed(model, TEXTS)
    expect(response.status, response.text).toBe(200)
    const { usage } = JSON.parse(response.text)
    expect(vectorsIn(response)).toEqual(TEXTS.map(({ length }) => [length, 0.5]))
    expect(usage).toEqual({ prompt_tokens: 6, total_tokens: 6 })
    expect(charged(response)).toBe(6)
    expect(bodies(bedrock).length + bodies(vertex).length).toBe(requests)
  })

  test('embeddings are in base64 where the client requests it', async () => {
    const { text } = await embed(model, 'a b', { encoding_format: 'base64' })
    const bytes = Buffer.from(JSON.parse(text).data[0].embedding, 'base64')
    expect([bytes.readFloatLE(0), bytes.readFloatLE(4)]).toEqual([3, 0.5])
  })

  test('Gemini clients get embeddings of one text or of several texts', async () => {
    const content = (text: string) => ({ content: { parts: [{ text }] }, taskType: 'RETRIEVAL_QUERY' })
    const ask = (method: string, body: object) =>
      call(gateway.url, body, { key: 'ann', path: `/v1beta/models/${model}:${method}` })
    const one = await ask('embedContent', content('a b'))
    expect(JSON.parse(one.text)).toMatchObject({ embedding: { values: [3, 0.5] } })
    const many = await ask('batchEmbedContents', { requests: TEXTS.map(content) })
    expect(many.status, many.text).toBe(200)
    expect(JSON.parse(many.text)).toMatchObject({
      embeddings: TEXTS.map(({ length }) => ({ values: [length, 0.5] })),
      usageMetadata: { promptTokenCount: 6 },
    })
    expect(charged(many)).toBe(6)
  })
})

test.each(['titan', 'cohere', 'text-embedding-005', 'gemini-embedding-2'])(
  'embeddings of token ids are refused without an upstream request for a model that only takes texts: %s',
  async (model) => {
    for (const input of [
      [1, 2],
      [[1], [2, 3]],
    ]) {
      const response = await call(gateway.url, { model, input }, { ...EMBEDDINGS, key: 'poor' })
      expect([response.status, response.json().error.code]).toEqual([400, 'invalid_request'])
      expect(response.json().error.message).toContain("'input'")
    }
    const poor = await call(gateway.url, { model, input: 'two words' }, { ...EMBEDDINGS, key: 'poor' })
    expect([poor.status, poor.json().error.code]).toEqual([403, 'insufficient_quota'])
    expect(bodies(bedrock).length + bodies(vertex).length).toBe(0)
  },
)

test('dimensions of embeddings are sent in the field that the model has for them, or listed as dropped if it has none', async () => {
  expect((await embed('titan', 'x', { dimensions: 256 })).headers['x-gateway-dropped']).toBeUndefined()
  await embed('cohere-v4', 'x', { dimensions: 256 })
  const without = await embed('cohere', 'x', { dimensions: 256 })
  expect(bodies(bedrock)).toMatchObject([
    { inputText: 'x', dimensions: 256 },
    { texts: ['x'], output_dimension: 256 },
    { texts: ['x'] },
  ])
  expect(without.headers['x-gateway-dropped']).toBe('dimensions')
  await embed('text-embedding-005', 'x', { dimensions: 256, task_type: 'CLUSTERING' })
  await embed('gemini-embedding-2', 'x', { dimensions: 256 })
  expect(bodies(vertex)).toEqual([
    { instances: [{ content: 'x', task_type: 'CLUSTERING' }], parameters: { outputDimensionality: 256 } },
    { content: { parts: [{ text: 'x' }] }, embedContentConfig: { outputDimensionality: 256 } },
  ])
})

test('more than 96 texts to embed are sent to Cohere in several requests', async () => {
  const texts = Array.from({ length: 200 }, (_, index) => 'x'.repeat(index + 1))
  const lengths = vectorsIn(await embed('cohere', texts)).map(([length]) => length)
  expect(lengths).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
  expect(bodies(bedrock).map(({ texts }) => texts?.length)).toEqual([96, 96, 8])
})

test('if a later batch of embeddings fails before any vectors were delivered, the client gets an error and no charge', async () => {
  failsAfter = 2
  const response = await embed('titan', TEXTS)
  expect(response.status).toBeGreaterThanOrEqual(500)
  const row = () => databaseOf(gateway.dataDir).usageOf(String(response.headers['x-request-id']))
  await expect.poll(row).toMatchObject({ quota: 0, reason: 'failed' })
})

describe('the charge of several requests', () => {
  test('if a later batch of embeddings fails after vectors were delivered, the answered batches are charged', async () => {
    // Above 1 MiB, vectors are delivered before all have arrived; the first request has 250 texts.
    dimensions = 2_000
    const input = [...Array.from({ length: 250 }, () => 'a b'), FAILING]
    const body = { model: 'text-embedding-005', input }
    const live = await open(gateway.url, body, EMBEDDINGS)
    expect((await live.end()).broken).toBe(true)
    const row = () => databaseOf(gateway.dataDir).usageOf(String(live.headers['x-request-id']))
    await expect.poll(row).toMatchObject({ input_tokens: 500, reason: 'cut' })
  })

  test('if the client leaves between batches of embeddings, the batches that were sent are charged', async () => {
    const sent = send(
      gateway.url,
      { model: 'gemini-embedding-2', input: ['a b c', NEVER, 'd e'] },
      EMBEDDINGS,
    )
    await expect.poll(() => vertex.received.some(({ body }) => body.includes(NEVER))).toBe(true)
    sent.destroy()
    const row = () => databaseOf(gateway.dataDir).usage().at(-1)
    await expect.poll(row).toMatchObject({ input_tokens: 3 + 1, reason: 'client_gone' })
  })

  test('if the client leaves before the next batch of embeddings is sent, only the answered batches are charged', async () => {
    const tokens = Promise.withResolvers<void>()
    afterVectors = () => {
      vertex.revoke()
      vertex.holdTokens(tokens.promise)
    }
    const input = ['a b c', 'd e']
    const sent = send(gateway.url, { model: 'gemini-embedding-2', input }, EMBEDDINGS)
    await expect.poll(() => vertex.received.length > 2 && vertex.received.at(-1)?.path).toBe('/token')
    sent.destroy()
    const row = () => databaseOf(gateway.dataDir).usage().at(-1)
    await expect.poll(row).toMatchObject({ input_tokens: 3, reason: 'client_gone' })
    tokens.resolve()
  })
})

test('an embeddings call of a model without embeddings is refused before anything is sent upstream', async () => {
  expect((await embed('nova', 'x')).status).toBe(400)
  expect(bedrock.received).toEqual([])
})

test('the model list names embeddings as the endpoint of embedding models', async () => {
  const { text } = await call(gateway.url, undefined, { key: 'ann', path: '/v1/models', method: 'GET' })
  const { data } = JSON.parse(text) as { data: { id: string; endpoints: string[] }[] }
  const endpoints = (id: string) => data.find((one) => one.id === id)?.endpoints
  expect([endpoints('text-embedding-005'), endpoints('gemini-embedding-001')]).toEqual([
    ['embeddings'],
    ['embeddings'],
  ])
  expect(endpoints('nova')).toContain('chat')
})
