import { CohereClient, CohereClientV2, CohereError } from 'cohere-ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { cohereAnswer, jinaAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { rerankChannel } from '../fixtures/rerank-fixture.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const MODEL = 'rerank-english-v3.0'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([MODEL]),
    channels: [rerankChannel(MODEL, upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const clientWith = (key: string): CohereClient =>
  new CohereClient({ token: key, environment: fixture.gateway.url, maxRetries: 0 })
const documents = ['Carson City', { text: 'Washington, D.C.' }]
const query = 'What is the capital?'

describe('the official Cohere client', () => {
  test.each([
    ['Cohere', cohereAnswer(scored(0.1, 0.9))],
    ['Jina', jinaAnswer(scored(0.1, 0.9), 20)],
  ])('the Cohere client gets the results that a %s upstream ranked', async (_, behaviour) => {
    fixture.upstream.script('m', behaviour)
    const { results } = await clientWith('sk-ann').rerank({ model: MODEL, query, documents })
    expect(results).toEqual([
      { index: 1, relevanceScore: 0.9 },
      { index: 0, relevanceScore: 0.1 },
    ])
  })

  test('the fields topN, returnDocuments and maxChunksPerDoc of the Cohere client take effect', async () => {
    fixture.upstream.script('m', cohereAnswer(scored(0.1, 0.9)))
    const { results, meta } = await clientWith('sk-ann').rerank({
      model: MODEL,
      query,
      documents,
      topN: 1,
      returnDocuments: true,
      maxChunksPerDoc: 5,
    })
    expect(results).toEqual([{ index: 1, relevanceScore: 0.9, document: { text: 'Washington, D.C.' } }])
    expect(meta?.billedUnits?.searchUnits).toBe(1)
    expect(JSON.parse(fixture.upstream.only('m').text)).toMatchObject({ top_n: 1, max_chunks_per_doc: 5 })
  })

  test('a document that the Cohere client sends as an object is returned to it as an object', async () => {
    const document = 'Washington, D.C.'
    fixture.upstream.script('m', cohereAnswer([{ index: 1, relevance_score: 0.9, document }]))
    const asked = { model: MODEL, query, documents, topN: 1, returnDocuments: true }
    const { results } = await clientWith('sk-ann').rerank(asked)
    expect(results).toEqual([{ index: 1, relevanceScore: 0.9, document: { text: document } }])
  })

  test.each([
    ['no model', 'sk-ann', {}, 400],
    ['a wrong key', 'sk-nobody', { model: MODEL }, 401],
    ['an unknown model', 'sk-ann', { model: 'unheard-of' }, 503],
  ])(
    'the Cohere client throws a CohereError with status and message for %s',
    async (_, key, fields, statusCode) => {
      const failure = await clientWith(key)
        .rerank({ query, documents, ...fields })
        .catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(CohereError)
      expect(failure).toMatchObject({ statusCode, body: { error: { message: expect.any(String) } } })
    },
  )
})

describe('the official Cohere client of the second version', () => {
  const clientOf = (key: string): CohereClientV2 =>
    new CohereClientV2({ token: key, environment: fixture.gateway.url, maxRetries: 0 })
  const texts = ['Carson City', 'Washington, D.C.']

  test('the Cohere client of API version 2 gets results at /v2/rerank', async () => {
    fixture.upstream.script('m', cohereAnswer(scored(0.1, 0.9)))
    const { results } = await clientOf('sk-ann').rerank({ model: MODEL, query, documents: texts, topN: 1 })
    expect(results).toEqual([{ index: 1, relevanceScore: 0.9 }])
    expect(JSON.parse(fixture.upstream.only('m').text)).toMatchObject({ query, documents: texts, top_n: 1 })
  })

  test.each([
    ['a wrong key', 'sk-nobody', MODEL, 401],
    ['an unknown model', 'sk-ann', 'unheard-of', 503],
  ])(
    'the Cohere client of API version 2 throws a CohereError with status and code for %s',
    async (_, key, model, statusCode) => {
      const failure = await clientOf(key)
        .rerank({ model, query, documents: texts })
        .catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(CohereError)
      expect(failure).toMatchObject({ statusCode, body: { error: { code: expect.any(String) } } })
    },
  )
})
