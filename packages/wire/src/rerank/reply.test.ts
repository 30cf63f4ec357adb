import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../../test/generators/characters.ts'
import { jsonText } from '../../../../test/generators/json.ts'
import { NO_USAGE } from '../usage.ts'
import { scanObject } from '../json/json-scan.ts'
import {
  type DocumentForm,
  readRerankReply,
  readRerankUsage,
  type RerankReply,
  writeRerankUsage,
} from './reply.ts'
import { readRerankRequest } from './request.ts'

const DOCUMENTS = ['zero', { text: 'one', id: 1 }, 'two', 'three']
const CHARGED = { ...NO_USAGE, input: 7, output: 1 }

function reading(
  reply: string | object,
  fields: object = {},
  documentForm: DocumentForm = 'as sent',
): RerankReply {
  const request = { model: 'm', query: 'q', documents: DOCUMENTS, ...fields }
  const scan = scanObject(Buffer.from(JSON.stringify(request)))
  const bytes = Buffer.from(typeof reply === 'string' ? reply : JSON.stringify(reply))
  return readRerankReply(bytes, scan, readRerankRequest(scan), documentForm)
}

const result = (index: unknown, score: unknown, document?: unknown): object => ({
  index,
  relevance_score: score,
  ...(document === undefined ? {} : { document }),
})
interface Body {
  readonly results: {
    readonly index: number
    readonly relevance_score: number
    readonly document?: unknown
  }[]
  readonly usage: object
}
const body = (reply: string | object, fields: object = {}, documentForm?: DocumentForm): Body =>
  JSON.parse(reading(reply, fields, documentForm).body(CHARGED).toString())

describe('the results', () => {
  test('rerank results are best first, and in the upstream’s order where they are equal', () => {
    const results = [result(0, 0.1), result(3, 0.5), result(1, 0.9), result(2, 0.5)]
    expect(body({ results }).results.map(({ index }) => index)).toEqual([1, 3, 2, 0])
  })
  test('rerank results are limited to top_n', () => {
    const results = [result(0, 0.1), result(1, 0.9), result(2, 0.5)]
    expect(body({ results }, { top_n: 2 }).results).toEqual([result(1, 0.9), result(2, 0.5)])
    expect(body({ results }, { top_n: 9 }).results).toHaveLength(3)
  })
  test('rerank results may be fewer than the documents, or none', () => {
    expect(body({ results: [result(2, 0.5)] }).results).toHaveLength(1)
    expect(body({ results: [] }).results).toEqual([])
  })
  test('rerank results keep their scores in the digits of the upstream, also negative ones and zero', () => {
    const text =
      '{"results":[{"index":0,"relevance_score":-1.50e-7},{"relevance_score":0.30000000000000004441,"index":1}]}'
    expect(reading(text).body(CHARGED).toString()).toBe(
      '{"results":[{"index":1,"relevance_score":0.30000000000000004441},{"index":0,"relevance_score":-1.50e-7}],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}',
    )
  })
  test('rerank results may be under the name data', () => {
    expect(body({ object: 'list', data: [result(1, 0.5)] })).toEqual({
      object: 'list',
      results: [result(1, 0.5)],
      usage: { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 },
    })
  })
})

describe('a document', () => {
  const results = [result(1, 0.9), result(0, 0.5)]
  test.each([{}, { return_documents: false }, { return_documents: null }])(
    'a rerank response returns no documents to a request with %j',
    (fields) => {
      const returned = [result(1, 0.9, { text: 'one' }), result(0, 0.5, 'zero')]
      expect(body({ results: returned }, fields).results).toEqual(results)
    },
  )
  test('a rerank response returns the upstream’s documents if the request wants documents', () => {
    const returned = [result(1, 0.9, { text: 'theirs' }), result(0, 0.5, 'their text')]
    expect(body({ results: returned }, { return_documents: true }).results).toEqual(returned)
  })
  test('a document in a rerank response is an object if it was sent as one, even if the upstream returns only its text', () => {
    const returned = [result(1, 0.9, 'their \u0022text'), result(0, 0.5, 'zero')]
    expect(body({ results: returned }, { return_documents: true }).results).toEqual([
      result(1, 0.9, { text: 'their \u0022text' }),
      result(0, 0.5, 'zero'),
    ])
  })
  test('a document in a rerank response of version 2 of the API is always an object', () => {
    const returned = [
      result(0, 0.9, 'zero'),
      result(1, 0.5),
      result(2, 0.1),
      result(3, 0, { text: 'theirs' }),
    ]
    expect(body({ results: returned }, { return_documents: true }, 'object').results).toEqual([
      result(0, 0.9, { text: 'zero' }),
      result(1, 0.5, { text: 'one', id: 1 }),
      result(2, 0.1, { text: 'two' }),
      result(3, 0, { text: 'theirs' }),
    ])
  })
  test.each([undefined, null, '', {}, { text: '' }, { text: null }, 5, ['one']])(
    'a rerank response returns the document of the request, as it was sent, if the upstream has %j',
    (document) => {
      const returned = [result(1, 0.9, document), result(0, 0.5, document)]
      expect(body({ results: returned }, { return_documents: true }).results).toEqual([
        result(1, 0.9, { text: 'one', id: 1 }),
        result(0, 0.5, 'zero'),
      ])
    },
  )
})

describe('beside the results', () => {
  test('a rerank response returns the charged usage in place of the upstream’s', () => {
    expect(body({ results: [], usage: { total_tokens: 5 } }).usage).toEqual({
      prompt_tokens: 7,
      completion_tokens: 1,
      total_tokens: 8,
    })
    expect(reading({ results: [], usage: { total_tokens: 5 } }).facts.usage).toEqual({
      ...NO_USAGE,
      input: 5,
    })
  })
  test("a rerank response keeps the upstream's members and bytes except for results and usage", () => {
    const text = '{"id":"r-1", "meta" : {"n":9007199254740993},"results":[],"model":"m"}'
    expect(reading(text).body(CHARGED).toString()).toBe(
      '{"results":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8},"id":"r-1","meta" : {"n":9007199254740993},"model":"m"}',
    )
  })
})

describe('invalid responses', () => {
  test.each<[string, string | object]>([
    ['invalid JSON', '<html>'],
    ['nothing', ''],
    ['an array', '[]'],
    ['without results', { id: 'x' }],
    ['whose results are an object', { results: {} }],
    ['whose results are null', { results: null }],
    ['with a result that is not an object', { results: [5] }],
    ['without an index', { results: [{ relevance_score: 1 }] }],
    ['with a negative index', { results: [result(-1, 1)] }],
    ['with an index beyond the documents', { results: [result(4, 1)] }],
    ['with a fraction of an index', { results: [result(0.5, 1)] }],
    ['with an index as text', { results: [result('0', 1)] }],
    ['with an index twice', { results: [result(0, 1), result(1, 0.5), result(0, 0.2)] }],
    ['without a score', { results: [{ index: 0 }] }],
    ['with a score as text', { results: [result(0, '1')] }],
    ['with no score', { results: [result(0, null)] }],
    ['with an endless score', '{"results":[{"index":0,"relevance_score":1e999}]}'],
    ['with NaN', '{"results":[{"index":0,"relevance_score":NaN}]}'],
    ['cut short', '{"results":[{"index":0,"relevance_score":0.5}'],
  ])('a body that is not a rerank response is recognized as such: %s', (_, reply) => {
    expect(reading(reply).facts).toMatchObject({ valid: false, usage: undefined })
  })
  test('a rerank response with the status 200 whose body is an error is recognized as an error, and not as a valid response', () => {
    expect(reading({ error: { message: 'no' }, results: [] }).facts).toMatchObject({
      valid: false,
      error: { data: expect.any(String) },
    })
    expect(reading({ error: null, results: [] }).facts).toMatchObject({ valid: true, error: undefined })
  })
  test('reading a rerank response never throws, whatever bytes it has', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((json) => Buffer.from(json)),
          fc.json().map((json) => Buffer.from(`{"results":[${json}]}`)),
        ),
        (bytes) => {
          const scan = scanObject(
            Buffer.from(JSON.stringify({ model: 'm', query: 'q', documents: DOCUMENTS })),
          )
          const reply = readRerankReply(Buffer.from(bytes), scan, readRerankRequest(scan), 'as sent')
          expect(reply.facts.valid).toBe(false)
        },
      ),
    )
  })
})

test('any ranking of the upstream reaches the client of a rerank request sorted, limited, and with the right documents', () => {
  const cases = fc
    .array(
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.record({ text: fc.string({ unit: anyCharacter }) })),
      {
        minLength: 1,
        maxLength: 12,
      },
    )
    .chain((documents) =>
      fc.record({
        documents: fc.constant(documents),
        indexes: fc.shuffledSubarray(documents.map((_, index) => index)),
        scores: fc.array(
          fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(0, 0.5, -1)),
          {
            minLength: documents.length,
            maxLength: documents.length,
          },
        ),
        topN: fc.option(fc.integer({ min: 1, max: 14 }), { nil: undefined }),
        returned: fc.boolean(),
      }),
    )
  fc.assert(
    fc.property(cases, ({ documents, indexes, scores, topN, returned }) => {
      const theirs = indexes.map((index, place) => ({
        index,
        // JSON.stringify writes -0 as 0.
        relevance_score: (scores[place] as number) + 0,
      }))
      const request = { documents, top_n: topN, return_documents: returned }
      const ours = body(jsonText({ results: theirs }), request).results
      expect(ours).toHaveLength(Math.min(theirs.length, topN ?? theirs.length))
      // Omitted results are not better than the last one returned, and each returned one equals the
      // upstream's.
      const best = theirs.toSorted((a, b) => b.relevance_score - a.relevance_score)
      for (const [place, { index, relevance_score: score, document }] of ours.entries()) {
        expect(index).toBe(best[place]?.index)
        expect(score).toBe(best[place]?.relevance_score)
        expect(document).toEqual(returned ? JSON.parse(JSON.stringify(documents[index])) : undefined)
      }
    }),
  )
})

const read = (reply: object): ReturnType<typeof readRerankUsage> =>
  readRerankUsage(scanObject(Buffer.from(JSON.stringify(reply))))

describe('the usage of a rerank response', () => {
  test.each<[string, object, number, number]>([
    ['a total (Jina, Voyage)', { usage: { total_tokens: 17, cost: 3.4e-7 } }, 17, 0],
    ['a total beside a prompt of zero', { usage: { prompt_tokens: 0, total_tokens: 17 } }, 17, 0],
    ['prompt and total', { usage: { prompt_tokens: 15, total_tokens: 17 } }, 15, 0],
    [
      'the chat protocol’s',
      { usage: { prompt_tokens: 2966, completion_tokens: 4, total_tokens: 2970 } },
      2966,
      4,
    ],
    ['a total of which some was generated', { usage: { completion_tokens: 4, total_tokens: 20 } }, 16, 4],
    ['input_tokens', { usage: { input_tokens: 9, output_tokens: 1 } }, 9, 1],
    ['meta.tokens (Cohere)', { meta: { tokens: { input_tokens: 30, output_tokens: 2 } } }, 30, 2],
    ['meta.billed_units', { meta: { billed_units: { input_tokens: 31, search_units: 1 } } }, 31, 0],
    [
      'meta.tokens before meta.billed_units',
      { meta: { tokens: { input_tokens: 30 }, billed_units: { input_tokens: 31 } } },
      30,
      0,
    ],
    ['usage before meta', { usage: { total_tokens: 5 }, meta: { tokens: { input_tokens: 30 } } }, 5, 0],
    ['a prompt beside output that cannot be true', { usage: { prompt_tokens: 9, output_tokens: -1 } }, 9, 0],
    ['a total beside a prompt that cannot be true', { usage: { prompt_tokens: 0.5, total_tokens: 9 } }, 9, 0],
    [
      'meta where usage cannot be true',
      { usage: { prompt_tokens: -1, total_tokens: 1.5 }, meta: { tokens: { input_tokens: 30 } } },
      30,
      0,
    ],
  ])('the usage of a rerank response is %s', (_, reply, input, output) => {
    expect(read(reply)).toMatchObject({ ...NO_USAGE, input, output, searchUnits: expect.anything() })
  })

  test.each([
    [3, 3],
    [2.5, 3],
  ])(
    'the usage of a rerank response may be search units (Cohere) without tokens: %d',
    (told, searchUnits) => {
      const billed = { meta: { billed_units: { search_units: told } } }
      expect(read(billed)).toEqual({ ...NO_USAGE, searchUnits, promptIsUnknown: true })
    },
  )

  test('the usage of a rerank response may be search units in addition to tokens', () => {
    const meta = { tokens: { input_tokens: 30 }, billed_units: { search_units: 2 } }
    expect(read({ meta })).toEqual({ ...NO_USAGE, input: 30, searchUnits: 2 })
  })

  test.each<[string, object]>([
    ['nothing', {}],
    ['no search unit', { meta: { billed_units: { search_units: 0 } } }],
    ['less than no search unit', { meta: { billed_units: { search_units: -3 } } }],
    ['search units beyond belief', { meta: { billed_units: { search_units: 1e300 } } }],
    ['null', { usage: null, meta: null }],
    ['zeros', { usage: { prompt_tokens: 0, total_tokens: 0 } }],
    ['text', { usage: { total_tokens: '17' } }],
    ['less than nothing', { usage: { total_tokens: -17 } }],
    ['a total below what was generated', { usage: { completion_tokens: 9, total_tokens: 5 } }],
    ['beyond belief', { usage: { total_tokens: 1e300 } }],
    ['a list', { usage: [1], meta: [1] }],
  ])('the usage of a rerank response is unknown where the upstream sends %s', (_, reply) => {
    expect(read(reply)).toBeUndefined()
  })
})

test('the usage of a rerank response has prompt tokens, completion tokens and their sum', () => {
  expect(JSON.parse(writeRerankUsage({ ...NO_USAGE, input: 7, output: 2 }))).toEqual({
    prompt_tokens: 7,
    completion_tokens: 2,
    total_tokens: 9,
  })
})
