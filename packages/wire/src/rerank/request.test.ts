import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { WireError } from '../wire-error.ts'
import { scanObject } from '../json/json-scan.ts'
import {
  type AdaptedRerankRequest,
  adaptRerankRequest,
  readRerankRequest,
  RERANK_PROMPT_RULES,
} from './request.ts'
import { settingsOf } from '../../../../test/samples/upstream-settings.ts'
import type { UpstreamSettings } from '../upstream-settings.ts'
import { promptTextOf } from '../prompt-text.ts'

const GOOD = { model: 'm', query: 'what?', documents: ['a', { text: 'b' }] }
const read = (body: object | string): ReturnType<typeof readRerankRequest> =>
  readRerankRequest(scanObject(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))))

function refusal(body: object | string): WireError {
  try {
    read(body)
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
  throw new Error(`accepted: ${JSON.stringify(body)}`)
}

describe('a rerank request', () => {
  test('a rerank request has model, documents, the maximum of results, and whether documents are returned', () => {
    expect(read({ ...GOOD, top_n: 3, return_documents: true })).toMatchObject({
      model: 'm',
      topN: 3,
      returnDocuments: true,
    })
    expect(read(GOOD)).toMatchObject({ topN: undefined, returnDocuments: false })
    expect(read(GOOD).documents).toHaveLength(2)
  })

  test.each(['top_n', 'return_documents', 'max_chunk_per_doc', 'overlap_tokens'])(
    'null for %s in a rerank request is the same as a missing field',
    (field) => {
      expect(read({ ...GOOD, [field]: null })).toMatchObject({ topN: undefined, returnDocuments: false })
    },
  )

  test('a rerank request may have unknown fields, and further fields in a document', () => {
    expect(
      read({ ...GOOD, priority: [1], documents: [{ title: 't', text: 'x', n: 1 }] }).documents,
    ).toHaveLength(1)
  })

  test.each([
    ['', { ...GOOD, model: '' }],
    ['null', { ...GOOD, model: null }],
    ['nothing', { query: 'q', documents: ['a'] }],
    ['nothing, whatever else is wrong', { documents: 5 }],
  ])('a rerank request whose model is %s gets the error that the model name is not specified', (_, body) => {
    const { code, message } = refusal(body)
    expect(code).toBe('model_not_specified')
    expect(message).toMatch(/model name is not specified/)
  })

  const secret = 'the caller’s own words'
  test.each<[string, object]>([
    ['model', { ...GOOD, model: 5 }],
    ['query', { model: 'm', documents: ['a'] }],
    ['query', { ...GOOD, query: null }],
    ['query', { ...GOOD, query: 5 }],
    ['query', { ...GOOD, query: [secret] }],
    ['query', { ...GOOD, query: { text: secret } }],
    ['documents', { model: 'm', query: 'q' }],
    ['documents', { ...GOOD, documents: null }],
    ['documents', { ...GOOD, documents: [] }],
    ['documents', { ...GOOD, documents: secret }],
    ['documents', { ...GOOD, documents: { 0: secret } }],
    ['documents[1]', { ...GOOD, documents: [secret, 5] }],
    ['documents[0]', { ...GOOD, documents: [null] }],
    ['documents[0]', { ...GOOD, documents: [[secret]] }],
    ['documents[0]', { ...GOOD, documents: [true] }],
    ['documents[2]', { ...GOOD, documents: ['a', 'b', { title: secret }] }],
    ['documents[0]', { ...GOOD, documents: [{ text: 5 }] }],
    ['documents[0]', { ...GOOD, documents: [{ text: null }] }],
    ['top_n', { ...GOOD, top_n: 0 }],
    ['top_n', { ...GOOD, top_n: -1 }],
    ['top_n', { ...GOOD, top_n: 1.5 }],
    ['top_n', { ...GOOD, top_n: '2' }],
    ['return_documents', { ...GOOD, return_documents: 'true' }],
    ['return_documents', { ...GOOD, return_documents: 1 }],
    ['max_chunk_per_doc', { ...GOOD, max_chunk_per_doc: 1.5 }],
    ['max_chunk_per_doc', { ...GOOD, max_chunk_per_doc: '2' }],
    ['overlap_tokens', { ...GOOD, overlap_tokens: true }],
  ])(
    'a rerank request with a wrong %s is an invalid_request that names it and repeats no text: %j',
    (field, body) => {
      const { code, message } = refusal(body)
      expect(code).toBe('invalid_request')
      expect(message).toContain(`'${field}'`)
      expect(message).not.toContain(secret)
    },
  )
})

describe('the upper bound of a rerank prompt', () => {
  test('the upper bound of a rerank prompt counts every byte, and the query once more for each document', () => {
    const bound = (query: string, documents: string[]): number =>
      read({ model: 'm', query, documents }).promptBound
    const letters = 'x'.repeat(1000)
    expect(bound(letters, ['a', 'b', 'c']) - bound('', ['a', 'b', 'c'])).toBe(4 * 1000)
    expect(bound('q', [letters, 'b']) - bound('q', ['', 'b'])).toBe(1000)
  })

  test('the upper bound of a rerank prompt is at least the bytes of query and documents', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.array(fc.string(), { minLength: 1 }),
        (query, documents) => {
          const bytes = [query, ...documents].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
          expect(read({ model: 'm', query, documents }).promptBound).toBeGreaterThanOrEqual(bytes)
        },
      ),
    )
  })
})

const V1 = 'https://api.example.com/v1'
const V2 = 'https://api.example.com/v2'

function gated(
  text: string,
  fields: Partial<UpstreamSettings> = {},
  passThrough = false,
): AdaptedRerankRequest {
  const scan = scanObject(Buffer.from(text))
  return adaptRerankRequest(scan, readRerankRequest(scan), settingsOf(fields), passThrough)
}

const FULL =
  '{ "model":"m", "query":"q","documents":["a",{"text":"b", "id":9007199254740993}],"top_n":2,"return_documents":true,"max_chunk_per_doc":3,"overlap_tokens":80,"unknown":[1.0]}'
const PLAIN = '{"model":"m","query":"q", "documents":["a","b"],"top_n":2,"x":1}'

describe('a request to a channel of the first version', () => {
  test("the first version of the rerank API gets the client's own buffer where nothing has to change", () => {
    const scan = scanObject(Buffer.from(PLAIN))
    const { body } = adaptRerankRequest(scan, readRerankRequest(scan), settingsOf({ base_url: V1 }), false)
    expect(body).toBe(scan.bytes)
  })
  test('the first version of the rerank API gets every field unchanged, and max_chunk_per_doc also as max_chunks_per_doc', () => {
    const { body, dropped } = gated(FULL, { base_url: V1 })
    expect(body.toString()).toBe(FULL.replace(/\}$/, ',"max_chunks_per_doc":3}'))
    expect(dropped).toEqual([])
  })
  test('the first version of the rerank API gets max_chunks_per_doc as the client wrote it', () => {
    const text = PLAIN.replace('"x":1', '"max_chunk_per_doc":3,"max_chunks_per_doc":4')
    expect(gated(text, { base_url: V1 }).body.toString()).toBe(text)
  })
  test("the first version of the rerank API gets no max_chunks_per_doc if the client's max_chunk_per_doc is null", () => {
    const text = PLAIN.replace('"x":1', '"max_chunk_per_doc":null')
    expect(gated(text, { base_url: V1 }).body.toString()).toBe(text)
  })
  test('the first version of the rerank API gets the mapped name of the model', () => {
    const { body, upstreamModel } = gated(PLAIN, { base_url: V1, model_mapping: new Map([['m', 'their-m']]) })
    expect(body.toString()).toBe(PLAIN.replace('"m"', '"their-m"'))
    expect(upstreamModel).toBe('their-m')
  })
})

describe('a request to a channel of the second version', () => {
  test('the second version of the rerank API gets documents as texts, and fields of the first version are reported as dropped', () => {
    const { body, dropped } = gated(FULL, { base_url: V2 })
    expect(JSON.parse(body.toString())).toEqual({
      model: 'm',
      query: 'q',
      documents: ['a', 'b'],
      top_n: 2,
      unknown: [1],
    })
    expect(dropped).toEqual(['max_chunk_per_doc', 'overlap_tokens'])
  })
  test("the second version of the rerank API gets the client's bytes where nothing has to change", () => {
    expect(gated(PLAIN, { base_url: V2 }).body.toString()).toBe(PLAIN)
  })
  test('the second version of the rerank API gets max_tokens_per_doc, which is a field of this version', () => {
    const text = PLAIN.replace('"x":1', '"max_tokens_per_doc":512')
    expect(gated(text, { base_url: V2 }).body.toString()).toBe(text)
  })
})

describe.each([V1, V2])('in pass-through mode to %s', (base_url) => {
  test('in pass-through mode only the name of the model is changed in a rerank request', () => {
    const mapped = { base_url, model_mapping: new Map([['m', 'their-m']]) }
    const expected = FULL.replace('"m"', '"their-m"')
    expect(gated(FULL, mapped, true).body.toString()).toBe(expected)
    expect(gated(FULL, { ...mapped, pass_through: true }).body.toString()).toBe(expected)
  })
})

test('the prompt tokens of a rerank request are counted from its texts, with the query once for all documents', () => {
  const body = {
    model: 'm',
    query: 'what "is" this?',
    documents: ['one\n', { title: 'its title', text: 'two — 2' }, 'three'],
    instruction: 'rank by age',
    top_n: 2,
  }
  expect(promptTextOf(Buffer.from(JSON.stringify(body)), RERANK_PROMPT_RULES, '')).toEqual({
    text: 'what "is" this?\ninstruction\nrank by age\none\n\ntitle\nits title\ntwo — 2\nthree',
    extraTokens: 0,
    chargedExtraTokens: 0,
  })
})
