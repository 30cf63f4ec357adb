import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../../../../test/samples/upstream-settings.ts'
import type { RestrictedField, UpstreamSettings } from '../../upstream-settings.ts'
import { sealSignature, UNSIGNED_THOUGHT_ENVELOPE } from '../../signature-envelope.ts'
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
      const { body: sent, dropped } = gate(body(field + SAMPLING))
      expect(sent.toString()).toBe(body(field))
      // A temperature of 1 is the default.
      expect(dropped).toEqual(['top_p', 'top_k'])
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

  test('a thought without a signature is removed from a native messages request to a host of Claude, and stays for others', () => {
    const unsigned = '{"type":"thinking","thinking":"I look.","signature": ""}'
    const sent = messages(`${unsigned},${own}`, `${unsigned},${text}`)
    const kept = messages(own, text)
    for (const base_url of [
      'https://api.anthropic.com/v1',
      'https://bedrock-runtime.eu-central-1.amazonaws.com',
      'https://bedrock-runtime.eusc-de-east-1.amazonaws.eu',
      'https://bedrock-runtime.us-iso-east-1.c2s.ic.gov',
      'https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com',
      'https://europe-west1-aiplatform.googleapis.com',
      'https://aiplatform.eu.rep.googleapis.com',
      'https://res.services.ai.azure.com/anthropic/v1',
    ])
      expect(gate(sent, { base_url }).body.toString()).toBe(kept)
    for (const base_url of [
      'https://api.moonshot.ai/anthropic/v1',
      'https://anthropic.com.example',
      'https://amazonaws-eu.test',
      // Machines on which operators run models of others.
      'https://ec2-1-2-3-4.compute-1.amazonaws.com',
      'https://gateway-1.us-east-1.elb.amazonaws.com',
      'https://vllm.westeurope.cloudapp.azure.com',
    ])
      expect(gate(sent, { base_url }).same).toBe(true)
    expect(gate(messages(own), { base_url: 'https://api.anthropic.com/v1' }).same).toBe(true)
  })

  const unsigned = `{"type":"thinking","thinking":"I look.","signature":"${UNSIGNED_THOUGHT_ENVELOPE}"}`
  const empty = '{"type":"thinking","thinking":"I look.","signature":""}'
  const claude = { base_url: 'https://api.anthropic.com/v1' }
  const budget = ',"thinking":{"type":"enabled","budget_tokens":1024}'

  test('a thought without a signature that another channel wrote goes natively to models of others, with an empty signature, and not to Claude', () => {
    const moonshot = { base_url: 'https://api.moonshot.ai/anthropic/v1' }
    const sent = messages(`${unsigned},${text}`, `${foreign},${text}`)
    expect(gate(sent, moonshot).body.toString()).toBe(messages(`${empty},${text}`, text))
    expect(gate(sent, claude).body.toString()).toBe(messages(text, text))
    const named = { ...moonshot, model_mapping: new Map([['small', 'anthropic/claude-x']]) }
    expect(gate(sent, named).body.toString()).toBe(
      messages(text, text).replace('small', 'anthropic/claude-x'),
    )
  })

  describe('before the last tool calls', () => {
    const call = '{"type":"tool_use","id":"a","name":"look","input":{}}'
    const result = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}'
    const asked = (content: string, last: string, fields: string): string =>
      `{"model":"small","max_tokens":9,"messages":[{"role":"assistant","content":[${content}]},${last}]${fields}}`

    test('thinking with a budget is left out of a native messages request if the thoughts before its last tool calls were removed', () => {
      const { body: sent, dropped } = gate(
        asked(`${unsigned},${call}`, result, `${budget},"context_management":{"edits":[]}`),
        claude,
      )
      expect(sent.toString()).toBe(asked(call, result, ''))
      expect(dropped).toEqual(['thinking', 'context_management'])
    })

    test.each([
      ['adaptive thinking', `${unsigned},${call}`, result, ',"thinking":{"type":"adaptive"}'],
      ['a signed thought is left', `${unsigned},${own},${call}`, result, budget],
      [
        'a redacted one is left',
        `${unsigned},{"type":"redacted_thinking","data":"a"},${call}`,
        result,
        budget,
      ],
      ['it ends with a text of the user', `${unsigned},${call}`, '{"role":"user","content":"a"}', budget],
      ['no call follows', `${unsigned},${text}`, result, budget],
    ])('thinking stays in a native messages request: %s', (_, content, last, fields) => {
      const { body: sent, dropped } = gate(asked(content, last, fields), claude)
      expect(sent.toString()).toBe(asked(content.replace(`${unsigned},`, ''), last, fields))
      expect(dropped).toEqual([])
    })

    test('thinking with a budget stays in a native messages request to models of others', () => {
      const { body: sent, dropped } = gate(asked(`${foreign},${call}`, result, budget))
      expect(sent.toString()).toBe(asked(call, result, budget))
      expect(dropped).toEqual([])
    })
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
