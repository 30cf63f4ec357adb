import { describe, expect, test } from 'vitest'
import { open, sealOpaque, sealProof } from './envelope.ts'

describe('encrypted reasoning', () => {
  test('of its own provider is neither wrapped nor opened', () => {
    expect(sealProof({ protocol: 'responses', value: 'gAAAA' })).toBe('gAAAA')
    expect(open('gAAAA')).toEqual({ proof: { protocol: 'responses', value: 'gAAAA' } })
  })

  test('brings what another wire wants back, whatever it is', () => {
    const proof = { protocol: 'messages', value: 'sig/+=ü' } as const
    expect(open(sealProof(proof))).toEqual({ proof })
    const opaque = { protocol: 'messages', value: { type: 'redacted_thinking', data: 'x' } } as const
    expect(open(sealOpaque(opaque))).toEqual({ opaque: { kind: 'opaque', ...opaque } })
  })

  test.each([
    ['cut', sealProof({ protocol: 'messages', value: 'signature' }).slice(0, -6)],
    [
      'of a wire that nobody knows',
      `sluice-1.${Buffer.from('{"protocol":"x","proof":"y"}').toString('base64url')}`,
    ],
    ['with nothing in it', `sluice-1.${Buffer.from('{"protocol":"messages"}').toString('base64url')}`],
  ])('that is no envelope, but %s, is the text that it is', (_, content) => {
    expect(open(content)).toEqual({ proof: { protocol: 'responses', value: content } })
  })
})
