import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../../../../test/samples/upstream-settings.ts'
import type { UpstreamSettings } from '../../upstream-settings.ts'
import { scanObject } from '../../json/json-scan.ts'
import { adaptGeminiRequest } from './adapt-request.ts'
import { writeSignature } from '../signature.ts'

function gate(
  source: string,
  channel: Partial<UpstreamSettings> = {},
  passThrough = false,
  requiresSignatures = false,
) {
  const bytes = Buffer.from(source)
  const model = { name: 'g', upstreamModel: 'g', requiresSignatures: () => requiresSignatures }
  const gated = adaptGeminiRequest(scanObject(bytes), model, settingsOf(channel), passThrough).body
  return { text: gated.toString(), same: gated === bytes }
}

const body = (fields: string): string => `{"contents":[ {"parts":[{"text":"Hi"}]} ]${fields}}`

describe('a request for a channel of its own protocol', () => {
  test('a native Gemini request is unchanged where nothing has to change', () => {
    expect(gate(body(',"generationConfig": {"seed": 12345678901234567890} ,"x":1.0')).same).toBe(true)
  })

  test.each(['serviceTier', 'service_tier'])(
    'a native Gemini request loses the field %s, unless the channel allows it',
    (name) => {
      const given = body(`,"${name}":"flex","x":1.0`)
      expect(gate(given).text).toBe(body(',"x":1.0'))
      expect(gate(given, { allow: new Set(['service_tier']) }).same).toBe(true)
      expect(gate(given, { pass_through: true }).same).toBe(true)
      expect(gate(given, {}, true).same).toBe(true)
    },
  )

  test('a native Gemini request has store: false where the channel disables storing, as storing is off without the field', () => {
    expect(gate(body(',"store":true'), { disable_store: true }, true).text).toBe(body(',"store":false'))
    expect(gate(body(',"store":true')).same).toBe(true)
    expect(gate(body(''), { disable_store: true }).same).toBe(true)
  })

  const SEALED = writeSignature({ protocol: 'messages', value: 'c2lnbmVk' })
  const [USER, OWN] = ['{"parts":[{"text":"Hi"}]}', `{"text":"", "thoughtSignature":"b3du"}`]
  const model = (...parts: string[]): string => `{"role":"model" , "parts":[${parts.join(',')}],"x":1.0}`
  const contents = (...given: string[]): string => `{"contents":[${given.join(',')}],"y":2.0}`

  test.each(['thoughtSignature', 'thought_signature'])(
    'a native Gemini request loses thoughts and signatures of other providers in %s, also in pass-through mode',
    (name) => {
      const [thought, call] = [
        `{"text":"So.","thought":true,"${name}":"${SEALED}"}`,
        '{"functionCall": {"name":"look","args":{"n":1.0}}}',
      ]
      const signed = `{"functionCall":{"name":"look"},"${name}":"${SEALED}"}`
      const given = contents(USER, model(thought, call, OWN), model(thought), model(signed))
      const expected = contents(USER, model(call, OWN), model('{"functionCall":{"name":"look"}}'))
      expect(gate(given).text).toBe(expected)
      expect(gate(given, {}, true).text).toBe(expected)
      expect(gate(contents(USER, model(OWN, `{"text":"\\"${SEALED}"}`))).same).toBe(true)
    },
  )

  const STAND_IN = '"thoughtSignature":"skip_thought_signature_validator"'
  const [FIRST, SECOND] = ['{"functionCall": {"name":"look"}}', '{"function_call":{"name":"see"} , "x":1.0}']
  const RESULT = '{"parts":[{"functionResponse":{"name":"look","response":{}}}]}'
  const signedBy = (part: string, member: string): string => `${part.slice(0, -1)},${member}}`

  test('a native Gemini request gets a placeholder signature at the first call of each step if it is unsigned and the model needs it', () => {
    const [thought, sealed] = [
      `{"text":"So.","thought":true,"thoughtSignature":"${SEALED}"}`,
      signedBy(FIRST, `"thoughtSignature":"${SEALED}"`),
    ]
    const own = signedBy(SECOND, '"thought_signature":"b3du"')
    const given = contents(
      USER,
      model(OWN, FIRST, SECOND),
      RESULT,
      model(own, FIRST),
      RESULT,
      model(thought, sealed),
      RESULT,
      model(signedBy(SECOND, '"thoughtSignature":null')),
    )
    const standing = (part: string): string => signedBy(part, STAND_IN)
    const expected = contents(
      USER,
      model(OWN, standing(FIRST), SECOND),
      RESULT,
      model(own, FIRST),
      RESULT,
      model(standing(FIRST)),
      RESULT,
      model(standing(SECOND)),
    )
    for (const passThrough of [false, true]) expect(gate(given, {}, passThrough, true).text).toBe(expected)
    expect(gate(expected, {}, false, true).same).toBe(true)
    expect(gate(contents(USER, model(FIRST))).same).toBe(true)
    expect(gate(contents(USER, model(OWN), USER), {}, false, true).same).toBe(true)
    expect(gate(contents(USER, `{"parts":[${FIRST}]}`), {}, false, true).same).toBe(true)
  })

  test('a native Gemini request gets a placeholder signature at a call whose name is written with escapes', () => {
    const escaped = String.raw`{"functi\u006fnCall":{"name":"look"}}`
    const { text } = gate(contents(USER, model(escaped)), {}, false, true)
    expect(text).toBe(contents(USER, model(signedBy(escaped, STAND_IN))))
  })
})
