import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { answered } from '../fixtures/media-fixture.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'

const MIB = 1024 * 1024
/** A vector with as many numbers as the longest usual ones have, and its text. */
const NUMBERS = Array.from({ length: 3072 }, (_, index) => ((index % 97) - 48) / 1237)
const LIST = JSON.stringify(NUMBERS)
const BASE64 = Buffer.from(new Float32Array(NUMBERS).buffer).toString('base64')
const USAGE = '{"prompt_tokens":9,"total_tokens":9}'

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: Object.fromEntries(['m', 'pair', 'gemini'].map((name) => [name, { price: PLAIN_PRICE }])),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('pair', upstream.baseUrl('pair'), { priority: 5 }),
      channel('spare', upstream.baseUrl('spare'), { models: ['pair'] }),
      channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const embed = (fields: object): Promise<FullResponse> =>
  call(
    fixture.gateway.url,
    { model: 'm', input: 'one two three', ...fields },
    { key: 'ann', path: '/v1/embeddings' },
  )

/** A response with this number of vectors, all the same. */
const response = (vectors: number, embedding = LIST): string => {
  const data = Array.from({ length: vectors }, (_, index) => `{"index":${index},"embedding":${embedding}}`)
  return `{"object":"list","data":[${data.join(',')}],"usage":${USAGE}}`
}

/** The number of vectors of a response above 64 MiB. */
const MANY = Math.ceil((66 * MIB) / LIST.length)

const embeddingsIn = ({ text }: FullResponse): unknown[] =>
  (JSON.parse(text) as { data: { embedding: unknown }[] }).data.map(({ embedding }) => embedding)

const rowOf = (answer: FullResponse) => database.usageOf(String(answer.headers['x-request-id']))

test('an embeddings response of more than 64 MiB is passed on unchanged, and charged by the usage at its end', async () => {
  const body = Buffer.from(response(MANY))
  fixture.upstream.script('m', answered('application/json', body))
  const answer = await embed({})
  expect(answer.bytes.equals(body)).toBe(true)
  expect(rowOf(answer)).toMatchObject({ quota: 9, reason: 'complete' })
})

test('vectors of a large embeddings response are converted from numbers to base64, or back, as the client requested', async () => {
  fixture.upstream.script('m', answered('application/json', Buffer.from(response(MANY))))
  const encoded = embeddingsIn(await embed({ encoding_format: 'base64' }))
  expect([encoded.length, new Set(encoded)]).toEqual([MANY, new Set([BASE64])])
  const vectors = Math.ceil((2 * MIB) / BASE64.length)
  fixture.upstream.script('m', answered('application/json', Buffer.from(response(vectors, `"${BASE64}"`))))
  const decoded = embeddingsIn(await embed({})) as number[][]
  expect(decoded).toHaveLength(vectors)
  for (const vector of decoded)
    expect(Buffer.from(new Float32Array(vector).buffer).toString('base64')).toBe(BASE64)
})

test('responses of a Gemini channel to several batches of embeddings may together exceed 64 MiB', async () => {
  fixture.upstream.decide('gemini', ({ text }: Received) => {
    const { requests } = JSON.parse(text) as { requests: unknown[] }
    const embeddings = requests.map(() => `{"values":${LIST}}`)
    const body = `{"embeddings":[${embeddings.join(',')}],"usageMetadata":{"promptTokenCount":100}}`
    return answered('application/json', Buffer.from(body))
  })
  const answer = await embed({ model: 'gemini', input: Array.from({ length: MANY }, () => 'a') })
  const vectors = new Set(embeddingsIn(answer).map((vector) => JSON.stringify(vector)))
  expect(vectors).toEqual(new Set([LIST]))
  expect(rowOf(answer)).toMatchObject({ quota: 100 * Math.ceil(MANY / 100), reason: 'complete' })
})

describe('a client of the Gemini API', () => {
  const asGemini = (model: string, texts: number): Promise<FullResponse> => {
    const requests = Array.from({ length: texts }, () => ({ content: { parts: [{ text: 'a' }] } }))
    const path = `/v1beta/models/${model}:batchEmbedContents`
    return call(fixture.gateway.url, { requests }, { key: 'ann', path })
  }

  test('a Gemini client gets an embeddings response of a Gemini channel of more than 64 MiB unchanged', async () => {
    const values = Array.from({ length: MANY }, () => `{"values":${LIST}}`).join(',')
    const body = Buffer.from(`{"embeddings":[${values}],"usageMetadata":{"promptTokenCount":100}}`)
    fixture.upstream.script('gemini', answered('application/json', body))
    const answer = await asGemini('gemini', 1)
    expect(answer.bytes.equals(body)).toBe(true)
    expect(rowOf(answer)).toMatchObject({ quota: 100, reason: 'complete' })
  })

  test('a Gemini client gets more than 64 MiB of embeddings from a channel that speaks the OpenAI API', async () => {
    fixture.upstream.script('m', answered('application/json', Buffer.from(response(MANY))))
    const { text, ...answer } = await asGemini('m', MANY)
    const { embeddings } = JSON.parse(text) as { embeddings: { values: number[] }[] }
    expect(new Set(embeddings.map(({ values }) => JSON.stringify(values)))).toEqual(new Set([LIST]))
    expect(embeddings).toHaveLength(MANY)
    expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({ quota: 9 })
  })

  test('a large embeddings response whose vectors are in a wrong order is broken off for a Gemini client', async () => {
    const wrong = response(100).replace('"index":98,', '"index":100,').replace('"index":99,', '"index":98,')
    fixture.upstream.script('m', answered('application/json', Buffer.from(wrong)))
    const requests = Array.from({ length: 100 }, () => ({ content: { parts: [{ text: 'a' }] } }))
    const path = '/v1beta/models/m:batchEmbedContents'
    const live = await open(fixture.gateway.url, { requests }, { key: 'ann', path })
    expect((await live.end()).broken).toBe(true)
  })
})

const truncated = (body: string): Behaviour => ({
  kind: 'raw',
  bytes: `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length + 1}\r\n\r\n${body}`,
  ending: 'close',
})

test('a large embeddings response that breaks off is visibly incomplete for the client, and its prompt is charged', async () => {
  fixture.upstream.script('pair', truncated(response(40).slice(0, 2 * MIB)))
  const request = { model: 'pair', input: 'one two three' }
  const answer = await (
    await open(fixture.gateway.url, request, { key: 'ann', path: '/v1/embeddings' })
  ).end()
  expect(answer.broken).toBe(true)
  expect(answer.bytes.length).toBeGreaterThan(MIB)
  expect(rowOf(answer)).toMatchObject({ quota: 3, reason: 'cut' })
})

test("a small embeddings response that breaks off is replaced by another channel's response", async () => {
  fixture.upstream.script('pair', truncated(response(10)))
  fixture.upstream.script('spare', answered('application/json', Buffer.from(response(10))))
  const answer = await embed({ model: 'pair' })
  expect(answer.text).toBe(response(10))
  expect(rowOf(answer)).toMatchObject({ quota: 9, reason: 'complete' })
})
