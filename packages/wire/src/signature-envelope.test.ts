import { describe, expect, test } from 'vitest'
import { openSignatureEnvelope, sealOpaquePart, sealSignature } from './signature-envelope.ts'

describe('the envelope of a signature, such as encrypted reasoning', () => {
  test('a signature for a client of the dialect that made it is passed on as it is, without an envelope', () => {
    expect(sealSignature({ protocol: 'responses', value: 'gAAAA' }, 'responses')).toBe('gAAAA')
    expect(openSignatureEnvelope('gAAAA', 'responses')).toEqual({
      proof: { protocol: 'responses', value: 'gAAAA' },
    })
  })

  test('a signature or opaque block is unchanged after it was put into an envelope for another dialect and taken out again', () => {
    const proof = { protocol: 'messages', value: 'sig/+=ü' } as const
    expect(openSignatureEnvelope(sealSignature(proof, 'responses'), 'responses')).toEqual({ proof })
    const ofCall = { protocol: 'gemini', value: 'c2ln', signs: 'call' } as const
    expect(openSignatureEnvelope(sealSignature(ofCall, 'messages'), 'messages')).toEqual({ proof: ofCall })
    const opaque = { protocol: 'messages', value: { type: 'redacted_thinking', data: 'x' } } as const
    expect(openSignatureEnvelope(sealOpaquePart(opaque), 'responses')).toEqual({
      opaque: { kind: 'opaque', ...opaque },
    })
  })

  test.each([
    [
      'that is cut off',
      sealSignature({ protocol: 'messages', value: 'signature' }, 'responses').slice(0, -6),
    ],
    [
      'of an unknown dialect',
      `sluice-1.${Buffer.from('{"protocol":"x","proof":"y"}').toString('base64url')}`,
    ],
    ['with nothing in it', `sluice-1.${Buffer.from('{"protocol":"messages"}').toString('base64url')}`],
  ])('an envelope %s is kept as text', (_, content) => {
    expect(openSignatureEnvelope(content, 'responses')).toEqual({
      proof: { protocol: 'responses', value: content },
    })
  })
})
