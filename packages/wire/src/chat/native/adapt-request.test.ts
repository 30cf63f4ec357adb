import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../../../../test/samples/upstream-settings.ts'
import type { RestrictedField, UpstreamSettings } from '../../upstream-settings.ts'
import { sealSignature } from '../../signature-envelope.ts'
import { scanObject } from '../../json/json-scan.ts'
import { type AdaptedChatRequest, adaptChatRequest } from './adapt-request.ts'
import { readChatRequest } from './request.ts'

const CHANNEL = settingsOf({ model_mapping: new Map([['big', 'vendor/big-2026']]) })
const ALL = new Set<RestrictedField>([
  'service_tier',
  'safety_identifier',
  'include_obfuscation',
  'inference_geo',
  'speed',
])

function gate(
  source: string,
  channel: Partial<UpstreamSettings> = {},
  passThrough = false,
): AdaptedChatRequest & { same: boolean } {
  const bytes = Buffer.from(source)
  const scan = scanObject(bytes)
  const gated = adaptChatRequest(
    scan,
    readChatRequest(scan),
    { ...CHANNEL, ...channel },
    { passThrough, statesTier: true },
  )
  return { ...gated, same: gated.body === bytes }
}

const body = (fields: string, model = 'small'): string =>
  `{"model":"${model}","messages":[{"role":"user"}]${fields}}`
const FILTERED = ',"service_tier":"flex","safety_identifier":"u","inference_geo":"eu","speed":"fast"'

describe('filtered fields', () => {
  test('fields that a channel must allow are removed from a chat request, and no other byte changes', () => {
    const { body: sent } = gate(body(`${FILTERED},"seed": 12345678901234567890 ,"x":1.0`))
    expect(sent.toString()).toBe(body(',"seed": 12345678901234567890 ,"x":1.0'))
  })

  test('a chat request to OpenAI is sent with service_tier default, unless the channel lets clients choose the tier', () => {
    const openai = { base_url: 'https://api.openai.com/v1' }
    const sent = (fields: string, channel: Partial<UpstreamSettings>): unknown =>
      JSON.parse(gate(body(fields), channel).body.toString())
    expect(sent(',"service_tier":"flex"', openai)).toMatchObject({ service_tier: 'default' })
    expect(sent('', openai)).toMatchObject({ service_tier: 'default' })
    expect(gate(body(''), { ...openai, allow: ALL }).same).toBe(true)
    expect(gate(body(''), openai, true).same).toBe(true)
  })

  test('each field that is removed from chat requests by default is forwarded if the channel allows it', () => {
    expect(gate(body(FILTERED), { allow: ALL }).same).toBe(true)
    expect(gate(body(FILTERED), { allow: new Set<RestrictedField>(['speed']) }).body.toString()).toBe(
      body(',"speed":"fast"'),
    )
  })

  test('include_obfuscation is removed from stream_options, which is removed when nothing is left', () => {
    expect(gate(body(',"stream_options":{"include_obfuscation":false}')).body.toString()).toBe(body(''))
    expect(gate(body(',"stream_options":{"include_obfuscation":false,"x":1}')).body.toString()).toBe(
      body(',"stream_options":{"x":1}'),
    )
    const asked = ',"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true}'
    expect(gate(body(asked)).body.toString()).toBe(
      body(',"stream":true,"stream_options":{"include_usage":true}'),
    )
    expect(gate(body(asked), { allow: ALL }).same).toBe(true)
  })
})

describe('usage', () => {
  test('usage is requested from the upstream for a chat stream if the client did not request it', () => {
    expect(gate(body(',"stream":true'))).toMatchObject({ addedUsageOption: true })
    expect(gate(body(',"stream":true')).body.toString()).toBe(
      body(',"stream":true,"stream_options":{"include_usage":true}'),
    )
    for (const options of ['null', '{}', '{"include_usage":false}', '{"include_usage":null}']) {
      const gated = gate(body(`,"stream":true,"stream_options":${options},"n":1`))
      expect(gated.body.toString()).toBe(body(',"stream":true,"stream_options":{"include_usage":true},"n":1'))
      expect(gated.addedUsageOption).toBe(true)
    }
  })

  test('the gateway requests usage neither twice nor for a whole chat response', () => {
    expect(gate(body(',"stream":true,"stream_options":{"include_usage":true}'))).toMatchObject({
      addedUsageOption: false,
      same: true,
    })
    expect(gate(body(''))).toMatchObject({ addedUsageOption: false, same: true })
    expect(gate(body(',"stream":false'))).toMatchObject({ addedUsageOption: false, same: true })
  })
})

test("the model name in a native chat request is replaced by the channel's mapping", () => {
  expect(gate(body('', 'big'))).toMatchObject({ upstreamModel: 'vendor/big-2026' })
  expect(gate(body(',"n":2', 'big')).body.toString()).toBe(body(',"n":2', 'vendor/big-2026'))
  expect(gate(body(''))).toMatchObject({ upstreamModel: 'small', same: true })
})

test('store of a chat request is forwarded unless the channel disables it', () => {
  expect(gate(body(',"store":true')).same).toBe(true)
  expect(gate(body(',"store":true,"n":1'), { disable_store: true }).body.toString()).toBe(body(',"n":1'))
})

describe('pass-through', () => {
  const fields = `${FILTERED},"stream":true,"stream_options":{"include_obfuscation":true},"store":true`

  test.each([
    ['of the gateway', {}, true],
    ['of the channel', { pass_through: true }, false],
  ] as const)(
    'in pass-through mode %s a chat request keeps all fields, and no usage is requested in addition',
    (_whose, channel, passThrough) => {
      expect(gate(body(fields), channel, passThrough)).toMatchObject({ same: true, addedUsageOption: false })
    },
  )

  test('in pass-through mode the model mapping and disable_store still apply to a chat request', () => {
    const gated = gate(body(fields, 'big'), { disable_store: true, pass_through: true })
    expect(gated.body.toString()).toBe(body(fields.replace(',"store":true', ''), 'vendor/big-2026'))
  })
})

describe('encrypted reasoning of other providers', () => {
  const data = sealSignature({ protocol: 'responses', value: 'x' }, 'chat')
  const own = `{"type":"reasoning.encrypted","data":"${data}","index":0}`
  const gatedMessages = (message: string): string => {
    const body = `{"model":"m","messages":[{"role":"user","content":"hi"},${message}]}`
    const scan = scanObject(Buffer.from(body))
    return adaptChatRequest(scan, readChatRequest(scan), settingsOf({}), {
      passThrough: false,
      statesTier: true,
    }).body.toString()
  }

  test.each([
    [`{"role":"assistant","content":"a","reasoning_details":[${own}]}`, '{"role":"assistant","content":"a"}'],
    [`{"reasoning_details" : [${own}] , "role":"assistant"}`, '{ "role":"assistant"}'],
    [
      `{"role":"assistant","reasoning_details":[{"text":"t"},${own}],"x":9007199254740993}`,
      `{"role":"assistant","reasoning_details":[{"text":"t"}],"x":9007199254740993}`,
    ],
  ])('encrypted reasoning of other providers is removed: %s', (message, expected) => {
    expect(gatedMessages(message)).toContain(`{"role":"user","content":"hi"},${expected}]`)
  })
})
