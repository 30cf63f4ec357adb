import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lawRuns } from '../runner/tier.ts'
import type { FullResponse, Body } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { cohereAnswer, jinaAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { askRerank, ranked, rerank, rerankChannel } from '../fixtures/rerank-fixture.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    groups: { default: {}, vip: {} },
    models: priced(['m', 'second', 'mapped', 'both', 'talks', 'far']),
    channels: [
      rerankChannel('m', upstream.baseUrl('m')),
      rerankChannel('second', upstream.baseUrl('second').replace(/v1$/, 'v2')),
      rerankChannel('mapped', upstream.baseUrl('mapped'), { model_mapping: { mapped: 'their-model' } }),
      rerankChannel('both', upstream.baseUrl('both')),
      channel('both-chat', upstream.baseUrl('both-chat'), { models: ['both'], priority: 9 }),
      channel('talks', upstream.baseUrl('talks')),
      rerankChannel('far', upstream.baseUrl('far'), { groups: ['vip'] }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('limited', { model_limits_enabled: true, model_limits: 'other' })]),
    ],
  }))
})
afterAll(() => fixture?.close())

const post = (body: Body, key = 'ann'): Promise<FullResponse> => rerank(fixture, key, body)

/** Asserts the envelope of the gateway's own errors, and that no upstream was called. */
function refused(answer: FullResponse, status: number, type: string, lane = 'm'): string {
  expect(answer.status, answer.text.slice(0, 500)).toBe(status)
  const { error } = answer.json()
  expect(error).toMatchObject({ type, code: expect.any(String), message: expect.any(String) })
  expect(error.message).toMatch(/\(request id: [^()\s]+\)$/)
  expect(fixture.upstream.received(lane)).toHaveLength(0)
  return error.message
}

describe('a rerank call', () => {
  test.each([
    ['Cohere’s first version', cohereAnswer(scored(0.1, 0.9, 0.5))],
    ['Cohere’s second version', cohereAnswer(scored(0.1, 0.9, 0.5), '2')],
    ['Jina', jinaAnswer(scored(0.1, 0.9, 0.5), 12)],
  ])(
    'a rerank call returns the results of %s best first, with usage and without documents',
    async (_, behaviour) => {
      fixture.upstream.script('m', behaviour)
      const answer = await post(askRerank('m'))
      const { results, usage } = ranked(answer)
      expect(results).toEqual([
        { index: 1, relevance_score: 0.9 },
        { index: 2, relevance_score: 0.5 },
        { index: 0, relevance_score: 0.1 },
      ])
      expect(usage).toEqual({
        prompt_tokens: expect.any(Number),
        completion_tokens: 0,
        total_tokens: usage.prompt_tokens,
      })
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      expect(answer.headers['x-request-id']).toEqual(expect.any(String))
    },
  )

  test('a rerank call goes to /rerank below the channel’s address, with its key and every field', async () => {
    fixture.upstream.script('m', cohereAnswer(scored(1, 1, 1)))
    const body = askRerank('m', {
      top_n: 2,
      return_documents: false,
      max_chunk_per_doc: 3,
      overlap_tokens: 80,
      unknown: { a: [1] },
    })
    await post(body)
    const { path, headers, text } = fixture.upstream.only('m')
    expect(path).toBe('/v1/rerank')
    expect(headers.authorization).toBe('Bearer upstream-key-of-m')
    expect(JSON.parse(text)).toEqual({ ...body, max_chunks_per_doc: 3 })
  })

  test('a rerank call is forwarded byte for byte where nothing has to change', async () => {
    fixture.upstream.script('m', cohereAnswer(scored(1)))
    const text = '{ "documents":["a\\u0062"],\n"model":"m","query":"q","seed":9007199254740993}'
    await post(text)
    expect(fixture.upstream.only('m').text).toBe(text)
  })

  test('a rerank call is sent with the name to which the channel maps its model', async () => {
    fixture.upstream.script('mapped', cohereAnswer(scored(1)))
    await post(askRerank('mapped', { documents: ['a'] }))
    expect(JSON.parse(fixture.upstream.only('mapped').text).model).toBe('their-model')
  })

  test("a rerank channel of API version 2 gets only that version's fields, and requested documents are still returned", async () => {
    fixture.upstream.script('second', cohereAnswer(scored(0.1, 0.2, 0.9), '2'))
    const fields = { top_n: 2, return_documents: true, max_chunk_per_doc: 3, overlap_tokens: 80 }
    const answer = await post(askRerank('second', fields))
    const { path, text } = fixture.upstream.only('second')
    expect(path).toBe('/v2/rerank')
    expect(JSON.parse(text)).toEqual({
      model: 'second',
      query: 'which?',
      documents: ['zero', 'one', 'two'],
      top_n: 2,
    })
    expect(answer.headers['x-gateway-dropped']).toBe('max_chunk_per_doc, overlap_tokens')
    expect(ranked(answer).results).toEqual([
      { index: 2, relevance_score: 0.9, document: { text: 'two' } },
      { index: 1, relevance_score: 0.2, document: 'one' },
    ])
  })

  test('rerank results are cut to top_n where the upstream returns more', async () => {
    fixture.upstream.script('m', jinaAnswer(scored(0.1, 0.9, 0.5), 12))
    expect(ranked(await post(askRerank('m', { top_n: 1 }))).results).toEqual([
      { index: 1, relevance_score: 0.9 },
    ])
  })

  test('rerank results include documents on request: the upstream’s, else those of the request', async () => {
    const [zero, one, two] = scored(0.9, 0.5, 0.1) as [object, object, object]
    const results = [{ ...zero, document: { text: 'zero' } }, { ...one, document: null }, two]
    fixture.upstream.script('m', { kind: 'whole', body: JSON.stringify({ results }) })
    expect(ranked(await post(askRerank('m', { return_documents: true }))).results).toEqual([
      { index: 0, relevance_score: 0.9, document: { text: 'zero' } },
      { index: 1, relevance_score: 0.5, document: 'one' },
      { index: 2, relevance_score: 0.1, document: { text: 'two' } },
    ])
  })

  test('rerank results at /v2/rerank include each document as an object with its text', async () => {
    const [zero, one, two] = scored(0.9, 0.5, 0.1) as [object, object, object]
    const results = [{ ...zero, document: 'zero' }, one, two]
    fixture.upstream.script('m', { kind: 'whole', body: JSON.stringify({ results }) })
    const asked = askRerank('m', { return_documents: true })
    expect(ranked(await rerank(fixture, 'ann', asked, { path: '/v2/rerank' })).results).toEqual([
      { index: 0, relevance_score: 0.9, document: { text: 'zero' } },
      { index: 1, relevance_score: 0.5, document: { text: 'one' } },
      { index: 2, relevance_score: 0.1, document: { text: 'two' } },
    ])
  })

  test.each([{}, { return_documents: false }, { return_documents: null }])(
    'rerank results include no documents with %j, even if the upstream includes them',
    async (fields) => {
      const results = scored(0.9, 0.5, 0.1).map((result) => ({ ...result, document: { text: 'theirs' } }))
      fixture.upstream.script('m', cohereAnswer(results))
      const answer = await post(askRerank('m', fields))
      expect(ranked(answer).results).toEqual(scored(0.9, 0.5, 0.1))
      expect(answer.text).not.toContain('theirs')
    },
  )

  test('a rerank response keeps additional fields of the upstream', async () => {
    fixture.upstream.script('m', cohereAnswer(scored(0.9, 0.5, 0.1)))
    expect(ranked(await post(askRerank('m')))).toMatchObject({
      id: 'rank-1',
      meta: { billed_units: { search_units: 1 } },
    })
  })
})

test('the client gets any ranking of the upstream sorted by score and limited to top_n', async () => {
  const cases = fc.integer({ min: 1, max: 8 }).chain((count) =>
    fc.record({
      count: fc.constant(count),
      indexes: fc.shuffledSubarray(Array.from({ length: count }, (_, index) => index)),
      scores: fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: count, maxLength: count }),
      topN: fc.option(fc.integer({ min: 1, max: 10 }), { nil: undefined }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(cases, async ({ count, indexes, scores, topN }) => {
      const theirs = indexes.map((index) => ({ index, relevance_score: scores[index] as number }))
      fixture.upstream.script('m', jinaAnswer(theirs, 5))
      const documents = Array.from({ length: count }, (_, index) => `document ${index}`)
      const { results } = ranked(await post(askRerank('m', { documents, top_n: topN })))
      const best = theirs.toSorted((a, b) => b.relevance_score - a.relevance_score)
      expect(JSON.stringify(results)).toBe(JSON.stringify(best.slice(0, topN)))
    }),
    { numRuns: lawRuns(100) },
  )
})

describe('refused rerank requests', () => {
  test.each([
    ['empty', { ...askRerank(''), model: '' }],
    ['null', { ...askRerank(''), model: null }],
    ['missing', { query: 'q', documents: ['a'] }],
    ['missing among other mistakes', { top_n: 0 }],
  ])('a rerank request is a 400 gateway_error where its model is %s', async (_, body) => {
    fixture.upstream.forget('m')
    expect(refused(await post(body), 400, 'gateway_error')).toContain('the model name is not specified')
  })

  test('a rerank request without a model is a 400, also for a key that is limited to certain models', async () => {
    expect(refused(await post({ query: 'q', documents: ['a'] }, 'limited'), 400, 'gateway_error')).toContain(
      'not specified',
    )
  })

  test.each<[string, object]>([
    ['query', { query: undefined }],
    ['query', { query: null }],
    ['query', { query: 7 }],
    ['query', { query: ['q'] }],
    ['documents', { documents: undefined }],
    ['documents', { documents: null }],
    ['documents', { documents: [] }],
    ['documents', { documents: 'a' }],
    ['documents[1]', { documents: ['a', 1] }],
    ['documents[0]', { documents: [{ title: 'a' }] }],
    ['documents[0]', { documents: [{ text: 1 }] }],
    ['top_n', { top_n: 0 }],
    ['top_n', { top_n: -1 }],
    ['top_n', { top_n: 1.5 }],
    ['top_n', { top_n: '1' }],
    ['return_documents', { return_documents: 'yes' }],
    ['max_chunk_per_doc', { max_chunk_per_doc: 'a' }],
    ['overlap_tokens', { overlap_tokens: 1.5 }],
    ['model', { model: 5 }],
  ])('a wrong %s is a 400 invalid_request_error that names the field: %j', async (field, fields) => {
    fixture.upstream.forget('m')
    const message = refused(await post(askRerank('m', { ...fields })), 400, 'invalid_request_error')
    expect(message).toContain(`'${field}'`)
  })

  test.each(['top_n', 'return_documents', 'max_chunk_per_doc', 'overlap_tokens'])(
    'a rerank request may have null for the field %s',
    async (field) => {
      fixture.upstream.script('m', cohereAnswer(scored(1, 1, 1)))
      expect(ranked(await post(askRerank('m', { [field]: null }))).results).toHaveLength(3)
    },
  )

  test.each([
    ['is no JSON', '{"model":"m"'],
    ['says a key twice', '{"model":"m","query":"q","documents":["a"],"model":"m"}'],
  ])('a rerank request that %s is a 400 invalid_request_error', async (_, body) => {
    fixture.upstream.forget('m')
    refused(await post(body), 400, 'invalid_request_error')
  })

  test('a rerank request without a key, or with a wrong one, is a 401', async () => {
    fixture.upstream.forget('m')
    const headers = { 'x-api-key': 'sk-ann' }
    const without = await rerank(fixture, 'ann', askRerank('m'), {
      headers: { ...headers, authorization: '' },
    })
    refused(without, 401, 'authentication_error')
    refused(await post(askRerank('m'), 'nobody'), 401, 'authentication_error')
  })

  test('a rerank request is a 403 where the key may not use the model', async () => {
    refused(await post(askRerank('m'), 'limited'), 403, 'permission_error')
  })

  test('a rerank request with another method is a 405', async () => {
    const answer = await rerank(fixture, 'ann', undefined, { method: 'GET' })
    expect(answer.status).toBe(405)
    expect(answer.headers.allow).toBe('POST')
  })
})

describe('channels that speak rerank', () => {
  test('only channels that speak rerank are called, where the model also has channels of other protocols', async () => {
    fixture.upstream.script('both', cohereAnswer(scored(1, 0, 0)))
    fixture.upstream.script('both-chat', { kind: 'whole', content: 'Hello.' })
    expect(ranked(await post(askRerank('both'))).results).toHaveLength(3)
    expect((await fixture.chat('ann', ask('both'))).json().choices[0]?.message.content).toBe('Hello.')
    expect(fixture.upstream.only('both').path).toBe('/v1/rerank')
    expect(fixture.upstream.only('both-chat').path).toBe('/v1/chat/completions')
  })

  test.each(['talks', 'unheard-of', 'far'])(
    'the model %s has no rerank channel in the group: 503 model_not_found',
    async (model) => {
      const answer = await post(askRerank(model))
      const message = refused(answer, 503, 'gateway_error', model)
      expect(answer.json().error.code).toBe('model_not_found')
      expect(message).toContain(`no available channel for model ${model} under group default`)
    },
  )

  test("a rerank request for a chat model is refused with the paths that the model's channels serve", async () => {
    const said = async (model: string): Promise<string> => (await post(askRerank(model))).json().error.message
    expect(await said('talks')).toContain(
      'default: its channels serve /v1/chat/completions, /v1/messages, /v1/responses and /v1beta/models (',
    )
    for (const model of ['unheard-of', 'far']) expect(await said(model)).toContain('under group default (')
  })

  test('a rerank channel never gets chat calls', async () => {
    fixture.upstream.forget('m')
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/messages/count_tokens']) {
      const answer = await fixture.chat('ann', ask('m', { max_tokens: 5 }), { path })
      expect([answer.status, answer.json().error.code]).toEqual([503, 'model_not_found'])
      expect(answer.json().error.message).toMatch(
        /^no available channel for model m under group default: its channels serve \/v1\/rerank alone \(request id/,
      )
      expect(answer.headers['x-should-retry']).toBe('false')
    }
    expect(fixture.upstream.received('m')).toHaveLength(0)
  })
})

describe('an upstream’s refusal of a rerank call', () => {
  test.each([400, 429, 500])(
    "a rerank upstream's error with status %i keeps its error type",
    async (status) => {
      const body = '{"error":{"type":"its_own","message":"no"}}'
      fixture.upstream.script('m', { kind: 'status', status, body })
      const answer = await post(askRerank('m'))
      expect(answer.status).toBe(status)
      expect(answer.json().error.type).toBe('its_own')
    },
  )

  test.each([
    [400, 'invalid_request_error'],
    [404, 'invalid_request_error'],
    [413, 'request_too_large'],
    [422, 'invalid_request_error'],
    [429, 'gateway_error'],
    [500, 'api_error'],
    [503, 'api_error'],
  ])(
    "a rerank upstream's error with status %i keeps status and message, and gets the type %s",
    async (status, type) => {
      fixture.upstream.script('m', {
        kind: 'status',
        status,
        body: '{"id":"x","message":"too many documents for upstream-key-of-m"}',
        headers: { 'retry-after': '7' },
      })
      const answer = await post(askRerank('m'))
      expect(answer.status).toBe(status)
      expect(answer.json().error).toMatchObject({
        type,
        code: expect.any(String),
        message: 'too many documents for [redacted]',
      })
      // Waiting does not help a request that is refused for itself.
      expect(answer.headers['retry-after']).toBe([400, 404, 413, 422].includes(status) ? undefined : '7')
    },
  )

  test.each([401, 403, 407])(
    "a rerank upstream's error with status %i is not passed on, but becomes a 500 api_error",
    async (status) => {
      fixture.upstream.script('m', { kind: 'status', status, body: '{"message":"invalid api token"}' })
      const answer = await post(askRerank('m'))
      expect(answer.status).toBe(500)
      expect(answer.json().error).toMatchObject({ type: 'api_error', code: 'upstream_error' })
      expect(answer.text).not.toContain('invalid api token')
    },
  )
})
