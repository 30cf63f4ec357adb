import { describe, expect, test } from 'vitest'
import { channelOf } from '../../../test/channel.ts'
import type { Channel } from '../../domain/channel.ts'
import { scanObject } from '../json/json-scan.ts'
import { gateGeminiRequest } from './gate.ts'
import { writeSignature } from './signature.ts'

function gate(source: string, channel: Partial<Channel> = {}, passThrough = false) {
  const bytes = Buffer.from(source)
  const gated = gateGeminiRequest(scanObject(bytes), channelOf(channel), passThrough)
  return { text: gated.toString(), same: gated === bytes }
}

const body = (fields: string): string => `{"contents":[ {"parts":[{"text":"Hi"}]} ]${fields}}`

describe('a request for a channel of its own protocol', () => {
  test('is the very bytes that came, where nothing has to change', () => {
    expect(gate(body(',"generationConfig": {"seed": 12345678901234567890} ,"x":1.0')).same).toBe(true)
  })

  test.each(['serviceTier', 'service_tier'])('has no %s, unless it may have one', (name) => {
    const given = body(`,"${name}":"flex","x":1.0`)
    expect(gate(given).text).toBe(body(',"x":1.0'))
    expect(gate(given, { allow: new Set(['service_tier']) }).same).toBe(true)
    expect(gate(given, { passThrough: true }).same).toBe(true)
    expect(gate(given, {}, true).same).toBe(true)
  })

  test('asks for nothing to be stored where the channel disables that; without the field nothing is', () => {
    expect(gate(body(',"store":true'), { disableStore: true }, true).text).toBe(body(',"store":false'))
    expect(gate(body(',"store":true')).same).toBe(true)
    expect(gate(body(''), { disableStore: true }).same).toBe(true)
  })

  const SEALED = writeSignature({ protocol: 'messages', value: 'c2lnbmVk' })
  const [USER, OWN] = ['{"parts":[{"text":"Hi"}]}', `{"text":"", "thoughtSignature":"b3du"}`]
  const model = (...parts: string[]): string => `{"role":"model" , "parts":[${parts.join(',')}],"x":1.0}`
  const contents = (...given: string[]): string => `{"contents":[${given.join(',')}],"y":2.0}`

  test.each(['thoughtSignature', 'thought_signature'])(
    'has no thoughts that another provider signed, in %s: with or without filters',
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
})
