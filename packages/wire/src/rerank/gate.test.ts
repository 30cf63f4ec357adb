import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../../../test/upstream-settings.ts'
import type { UpstreamSettings } from '../upstream-settings.ts'
import { scanObject } from '../json/json-scan.ts'
import { type GatedRerank, gateRerankRequest, readRerankRequest } from './request.ts'

const V1 = 'https://api.example.com/v1'
const V2 = 'https://api.example.com/v2'

function gated(text: string, fields: Partial<UpstreamSettings> = {}, passThrough = false): GatedRerank {
  const scan = scanObject(Buffer.from(text))
  return gateRerankRequest(scan, readRerankRequest(scan), settingsOf(fields), passThrough)
}

const FULL =
  '{ "model":"m", "query":"q","documents":["a",{"text":"b", "id":9007199254740993}],"top_n":2,"return_documents":true,"max_chunk_per_doc":3,"overlap_tokens":80,"unknown":[1.0]}'
const PLAIN = '{"model":"m","query":"q", "documents":["a","b"],"top_n":2,"x":1}'

describe('a request to a channel of the first version', () => {
  test("the first version gets the client's own buffer, where nothing has to change", () => {
    const scan = scanObject(Buffer.from(PLAIN))
    const { body } = gateRerankRequest(scan, readRerankRequest(scan), settingsOf({ base_url: V1 }), false)
    expect(body).toBe(scan.bytes)
  })
  test('the first version gets every field unchanged, and the maximum of chunks under the upstreams’ own name, too', () => {
    const { body, dropped } = gated(FULL, { base_url: V1 })
    expect(body.toString()).toBe(FULL.replace(/\}$/, ',"max_chunks_per_doc":3}'))
    expect(dropped).toEqual([])
  })
  test('the first version gets the maximum of chunks under that name as the client wrote it, where it did', () => {
    const text = PLAIN.replace('"x":1', '"max_chunk_per_doc":3,"max_chunks_per_doc":4')
    expect(gated(text, { base_url: V1 }).body.toString()).toBe(text)
  })
  test("the first version gets no maximum of chunks where the client's is null", () => {
    const text = PLAIN.replace('"x":1', '"max_chunk_per_doc":null')
    expect(gated(text, { base_url: V1 }).body.toString()).toBe(text)
  })
  test('the first version gets the mapped name of the model', () => {
    const { body, upstreamModel } = gated(PLAIN, { base_url: V1, model_mapping: new Map([['m', 'their-m']]) })
    expect(body.toString()).toBe(PLAIN.replace('"m"', '"their-m"'))
    expect(upstreamModel).toBe('their-m')
  })
})

describe('a request to a channel of the second version', () => {
  test('the second version gets the fields that it knows, and documents as texts; removed fields are named', () => {
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
  test("the second version gets the client's own buffer, where nothing has to change", () => {
    expect(gated(PLAIN, { base_url: V2 }).body.toString()).toBe(PLAIN)
  })
  test('the second version gets max_tokens_per_doc, which is its own field', () => {
    const text = PLAIN.replace('"x":1', '"max_tokens_per_doc":512')
    expect(gated(text, { base_url: V2 }).body.toString()).toBe(text)
  })
})

describe.each([V1, V2])('in pass-through mode to %s', (base_url) => {
  test('in pass-through mode only the name of the model is changed', () => {
    const mapped = { base_url, model_mapping: new Map([['m', 'their-m']]) }
    const expected = FULL.replace('"m"', '"their-m"')
    expect(gated(FULL, mapped, true).body.toString()).toBe(expected)
    expect(gated(FULL, { ...mapped, pass_through: true }).body.toString()).toBe(expected)
  })
})
