import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../../../../test/samples/upstream-settings.ts'
import type { RestrictedField, UpstreamSettings } from '../../upstream-settings.ts'
import { scanObject } from '../../json/json-scan.ts'
import { adaptResponsesRequest } from './adapt-request.ts'
import { readResponsesRequest } from './request.ts'

const ALL = new Set<RestrictedField>(['service_tier', 'safety_identifier', 'include_obfuscation'])

const OPENAI = 'https://api.openai.com/v1'

interface Options {
  readonly statesTier?: boolean
  readonly channel?: Partial<UpstreamSettings>
  readonly passThrough?: boolean
  readonly replace?: ReadonlyMap<string, string>
}

function gate(source: string, { channel, passThrough = false, replace, statesTier = true }: Options = {}) {
  const bytes = Buffer.from(source)
  const scan = scanObject(bytes)
  const to = settingsOf({ model_mapping: new Map([['big', 'vendor/big-2026']]), ...channel })
  const gated = adaptResponsesRequest(scan, readResponsesRequest(scan), to, {
    passThrough,
    statesTier,
    ...(replace && { replace }),
  })
  return { ...gated, text: gated.body.toString(), same: gated.body === bytes }
}

const body = (fields: string, model = 'small'): string => `{"model":"${model}","input":"Hi"${fields}}`
const FILTERED = ',"service_tier":"flex","safety_identifier":"u"'

describe('a request for a channel of its own protocol', () => {
  test('a native responses request is unchanged where nothing has to change', () => {
    expect(gate(body(',"seed": 12345678901234567890 ,"x":1.0')).same).toBe(true)
  })

  test("a native responses request is sent with the upstream's name of the model", () => {
    expect(gate(body('', 'big'))).toMatchObject({
      upstreamModel: 'vendor/big-2026',
      text: body('', 'vendor/big-2026'),
    })
  })

  test('a native responses request to OpenAI is sent with service_tier default, unless the channel lets clients choose the tier', () => {
    const channel = { base_url: OPENAI }
    expect(JSON.parse(gate(body(',"service_tier":"flex"'), { channel }).text)).toMatchObject({
      service_tier: 'default',
    })
    expect(JSON.parse(gate(body(''), { channel }).text)).toMatchObject({ service_tier: 'default' })
    expect(gate(body(''), { channel, statesTier: false }).same).toBe(true)
    expect(gate(body(''), { channel: { ...channel, allow: ALL } }).same).toBe(true)
    expect(gate(body(''), { channel, passThrough: true }).same).toBe(true)
  })

  test('a native responses request loses filtered fields, unless the channel allows them or is in pass-through mode', () => {
    expect(gate(body(`${FILTERED},"x":1.0`)).text).toBe(body(',"x":1.0'))
    expect(gate(body(FILTERED), { channel: { allow: ALL } }).same).toBe(true)
    expect(gate(body(FILTERED), { passThrough: true }).same).toBe(true)
    expect(gate(body(FILTERED), { channel: { pass_through: true } }).same).toBe(true)
  })

  test('include_obfuscation is removed from a native responses request, and stream_options if nothing is left in it', () => {
    expect(gate(body(',"stream_options":{"include_obfuscation":false}')).text).toBe(body(''))
    expect(gate(body(',"stream_options":{"include_obfuscation":false,"x":1}')).text).toBe(
      body(',"stream_options":{"x":1}'),
    )
  })

  test('a native responses request has store: false where the channel disables storing, as absence would mean the opposite', () => {
    expect(gate(body(''), { channel: { disable_store: true } }).text).toBe(body(',"store":false'))
    expect(gate(body(',"store":true'), { channel: { disable_store: true } }).text).toBe(
      body(',"store":false'),
    )
    expect(gate(body(',"store":false'), { channel: { disable_store: true } }).same).toBe(true)
  })

  test('previous_response_id in a native responses request can be replaced by the id that the upstream knows', () => {
    const replace = new Map([['previous_response_id', '"resp_up"']])
    expect(gate(body(',"previous_response_id":"resp_1"'), { replace }).text).toBe(
      body(',"previous_response_id":"resp_up"'),
    )
  })
})
