import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../../../../test/samples/upstream-settings.ts'
import type { RestrictedField, UpstreamSettings } from '../../upstream-settings.ts'
import { sealSignature } from '../../signature-envelope.ts'
import { scanObject } from '../../json/json-scan.ts'
import { encodeBlocks } from '../encode/reply.ts'
import { type AdaptedMessagesRequest, adaptMessagesRequest } from './adapt-request.ts'
import { readMessagesRequest } from './request.ts'
import { writeCitation } from '../blocks.ts'

const CHANNEL = settingsOf({ model_mapping: new Map([['big', 'vendor/big-2026']]) })

function gate(
  source: string,
  channel: Partial<UpstreamSettings> = {},
  passThrough = false,
): AdaptedMessagesRequest & { same: boolean } {
  const bytes = Buffer.from(source)
  const scan = scanObject(bytes)
  const gated = adaptMessagesRequest(scan, readMessagesRequest(scan), { ...CHANNEL, ...channel }, passThrough)
  return { ...gated, same: gated.body === bytes }
}

const body = (fields: string, model = 'small'): string =>
  `{"model":"${model}","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{ "ttl":"1h","type":"ephemeral"}}]}]${fields}}`
const GATED = ',"service_tier":"auto","inference_geo":"eu","speed":"fast"'
const SAMPLING = ',"temperature":1,"top_p":0.9,"top_k":5'

describe('channel-gated fields', () => {
  test('fields that a channel must allow are removed from a native messages request, and no other byte changes', () => {
    const rest = ',"x": 12345678901234567890 ,"safety_identifier":"u"'
    expect(gate(body(GATED + rest)).body.toString()).toBe(body(rest))
  })

  test('each field that a channel must allow stays in a native messages request if the channel allows it', () => {
    const all = new Set<RestrictedField>(['service_tier', 'inference_geo', 'speed'])
    expect(gate(body(GATED), { allow: all }).same).toBe(true)
    expect(gate(body(GATED), { allow: new Set<RestrictedField>(['inference_geo']) }).body.toString()).toBe(
      body(',"inference_geo":"eu"'),
    )
  })
})

describe('sampling', () => {
  test.each(['{"type":"enabled","budget_tokens":1024}', '{"type":"adaptive"}'])(
    'sampling fields are removed from a native messages request with thinking %s',
    (thinking) => {
      const field = `,"thinking":${thinking}`
      expect(gate(body(field + SAMPLING)).body.toString()).toBe(body(field))
    },
  )

  test('sampling fields stay in a native messages request without thinking, and with thinking disabled', () => {
    expect(gate(body(SAMPLING)).same).toBe(true)
    expect(gate(body(`${SAMPLING},"thinking":{"type":"disabled"}`)).same).toBe(true)
    expect(gate(body(`${SAMPLING},"thinking":null`)).same).toBe(true)
  })
})

test('the model name of a native messages request is mapped, in pass-through mode too', () => {
  const { body: sent, upstreamModel } = gate(body('', 'big'))
  expect(sent.toString()).toBe(body('', 'vendor/big-2026'))
  expect(upstreamModel).toBe('vendor/big-2026')
  const all = `,"thinking":{"type":"adaptive"}${GATED}${SAMPLING}`
  expect(gate(body(all, 'big'), { pass_through: true }).body.toString()).toBe(body(all, 'vendor/big-2026'))
  expect(gate(body(all), {}, true).same).toBe(true)
})

test('a native messages request keeps all bytes where nothing has to change', () => {
  fc.assert(
    fc.property(fc.jsonValue({ depthSize: 'small' }), fc.boolean(), (value, spaced) => {
      const other = `,"x_other":${JSON.stringify(value, null, spaced ? 2 : 0)}`
      expect(gate(body(other)).same).toBe(true)
    }),
  )
})

describe('a thought of another provider', () => {
  const signature = sealSignature({ protocol: 'gemini', value: 'c2lnbmVk', signs: 'call' }, 'messages')
  const foreign = `{"type":"thinking","thinking":"","signature":"${signature}"}`
  const own = '{"type":"thinking", "thinking":"I look.","signature":"c2lnbmVk"}'
  const text = '{"type":"text","text":"é"}'
  const messages = (...contents: string[]): string =>
    `{"model":"small","max_tokens":9,"messages":[${contents.map((content) => `{"role":"assistant", "content":[${content}],"x":1}`).join(',')}],"y":1.0}`

  test('thoughts of other providers are removed from a native messages request, as upstreams refuse their envelope', () => {
    expect(gate(messages(`${own},${foreign},${text}`, foreign, text)).body.toString()).toBe(
      messages(`${own},${text}`, text),
    )
    expect(gate(messages(foreign, own), {}, true).body.toString()).toBe(messages(own))
    expect(gate(messages(own, text)).same).toBe(true)
  })
})

describe('a web search of another provider', () => {
  const search = { kind: 'search', protocol: 'responses', query: 'q', isFailed: false } as const
  const page = { url: 'https://a.test/', title: 'A' }
  const foreign = (pages: readonly (typeof page)[]): string =>
    encodeBlocks({ ...search, pages }, '1').join(',')
  const cited = writeCitation(page)
  const own = { ...cited, encrypted_index: 'Eo8B' }
  const text = (...citations: readonly object[]): string =>
    `{"type":"text", "text":"é","citations":${citations.length > 0 ? JSON.stringify(citations) : 'null'}}`
  const messages = (...contents: string[]): string =>
    `{"model":"small","max_tokens":9,"messages":[${contents.map((content) => `{"role":"assistant", "content":[${content}]}`).join(',')}]}`

  test('searches of other providers are removed with their results from a native messages request, as upstreams refuse them', () => {
    expect(gate(messages(`${foreign([page])},${text(own)}`, foreign([]))).body.toString()).toBe(
      messages(text(own)),
    )
  })

  test("citations of other providers' searches are removed from a native messages request; the text and own citations stay", () => {
    expect(gate(messages(text(cited, own, cited), text(cited))).body.toString()).toBe(
      messages(text(own), text()),
    )
    expect(gate(messages(text(own))).same).toBe(true)
  })
})
