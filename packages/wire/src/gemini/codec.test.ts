import { describe, expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../../test/fixtures/pace.ts'
import { conversationOf, upstreamOf } from '../../../../test/samples/conversation.ts'
import { capabilitiesOf } from '../model-capabilities.ts'
import { scanObject } from '../json/json-scan.ts'
import type { ProviderSignature } from '../conversation.ts'
import { geminiCodec } from './index.ts'
import { readSignature, encodeOpaquePart, writeSignature } from './signature.ts'
import { maxTokensOf } from './encode/request.ts'

const USER = { role: 'user', parts: [{ kind: 'text', text: 'Hi' }] } as const

describe('a written Gemini request', () => {
  test('the output maximum of an encoded Gemini request is the one for which quota is held', () => {
    const asked = conversationOf({ turns: [USER], maxTokens: 100, thinking: { kind: 'budget', tokens: 500 } })
    const upstream = upstreamOf('gemini-2.5-flash')
    const body = geminiCodec.encodeRequest(asked, upstream, new Set())
    expect(JSON.parse(body.toString()).generationConfig.maxOutputTokens).toBe(600)
    expect(maxTokensOf(asked, upstream.capabilities)).toBe(600)
  })

  test.each([
    ['adaptive', 'gemini-x', { thinkingLevel: 'MEDIUM', includeThoughts: true }],
    ['budget', 'gemini-3-pro', { thinkingBudget: 2048, includeThoughts: true }],
    ['none', 'gemini-2.5-pro', undefined],
  ] as const)(
    'an encoded Gemini request states thinking in the way that the operator configured for the model: %s',
    (thinking, name, expected) => {
      const asked = conversationOf({ turns: [USER], thinking: { kind: 'adaptive', effort: 'medium' } })
      const capabilities = capabilitiesOf(name, name, { thinking })
      const body = geminiCodec.encodeRequest(asked, { ...upstreamOf(name), capabilities }, new Set())
      expect(JSON.parse(body.toString()).generationConfig?.thinkingConfig).toEqual(expected)
    },
  )

  test('an encoded Gemini request begins with a user turn, and has no empty turns', () => {
    const turns = [
      { role: 'assistant', parts: [{ kind: 'text', text: 'Hello.' }] },
      { role: 'user', parts: [] },
    ] as const
    const body = geminiCodec.encodeRequest(conversationOf({ turns }), upstreamOf('m'), new Set())
    expect(JSON.parse(body.toString()).contents).toEqual([
      { role: 'user', parts: [{ text: '...' }] },
      { role: 'model', parts: [{ text: 'Hello.' }] },
      { role: 'user', parts: [{ text: '...' }] },
    ])
  })
})

describe('a parsed Gemini request', () => {
  test('Gemini function calls without an id get ids that no other call has', () => {
    const part = (id?: string): object => ({ functionCall: { name: 'f', id } })
    const contents = [{ role: 'model', parts: [part('call_1'), part(), part()] }]
    const bytes = Buffer.from(JSON.stringify({ model: 'models/m', contents }))
    const { turns, model } = geminiCodec.decodeRequest(scanObject(bytes), new Set())
    expect(turns[0]?.parts).toMatchObject([{ id: 'call_1' }, { id: 'call_2' }, { id: 'call_3' }])
    expect(model).toBe('m')
  })

  test('the text that ends a content of a Gemini model and the one that begins the next are joined, and no others', () => {
    const [a, b] = [{ text: 'a' }, { text: 'b' }]
    const thoughtSignature = Buffer.from('signed').toString('base64')
    const contents = [
      { role: 'user', parts: [a] },
      { role: 'user', parts: [b] },
      { role: 'model', parts: [{ text: 'x', thought: true }, a, b] },
      { role: 'model', parts: [{ ...a, thoughtSignature }] },
      { role: 'model', parts: [b, { functionCall: { name: 'f' } }, a] },
      { role: 'model', parts: [b] },
    ]
    const bytes = Buffer.from(JSON.stringify({ model: 'm', contents }))
    const { turns } = geminiCodec.decodeRequest(scanObject(bytes), new Set())
    expect(turns.map(({ parts }) => parts)).toMatchObject([
      [a],
      [b],
      [
        { kind: 'thinking', text: 'x' },
        a,
        { text: 'ba' },
        { kind: 'thinking', proof: { value: thoughtSignature, signs: 'text' } },
        b,
        { kind: 'tool-call' },
        { text: 'ab' },
      ],
    ])
  })
})

describe('a signature', () => {
  test.each<ProviderSignature>([
    { protocol: 'messages', value: 'EqQBCgIYAhIM/+==' },
    { protocol: 'responses', value: 'gAAAA_-' },
  ])('a signature of another provider is returned unchanged: $protocol', (proof) => {
    const written = writeSignature(proof)
    expect(Buffer.from(written, 'base64').toString('base64')).toBe(written)
    expect(readSignature(written, 'I think.')).toEqual({ kind: 'thinking', text: 'I think.', proof })
    // Some clients write bytes in the URL-safe alphabet.
    const urlSafe = written.replaceAll('+', '-').replaceAll('/', '_')
    expect(readSignature(urlSafe, '')).toMatchObject({ proof })
  })

  test('an opaque part of another provider that was encoded as a Gemini signature is decoded unchanged', () => {
    const part = {
      kind: 'opaque',
      protocol: 'messages',
      value: { type: 'redacted_thinking', data: 'x' },
    } as const
    expect(readSignature(encodeOpaquePart(part), '')).toEqual(part)
  })
})

describe('a parsed Gemini stream', () => {
  const frame = (value: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\r\n\r\n`)
  const text = (part: object, finishReason?: string): Buffer =>
    frame({ candidates: [{ content: { parts: [part] }, ...(finishReason && { finishReason }) }] })

  test('an error in a Gemini stream is decoded with the status that it states', () => {
    const events = geminiCodec
      .streamDecoder()
      .push(frame({ error: { code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' } }))
    expect(events).toMatchObject([
      { kind: 'failure', type: 'RESOURCE_EXHAUSTED', message: 'Slow down.', status: 429 },
    ])
  })

  test('a Gemini stream with a signature of 200 KB is decoded with the whole signature', () => {
    const signature = 'A'.repeat(200_000)
    const decoder = geminiCodec.streamDecoder()
    const events = [
      ...decoder.push(text({ text: '', thoughtSignature: signature }, 'STOP')),
      ...decoder.end(),
    ]
    const proof = { protocol: 'gemini', value: signature, signs: 'text' }
    expect(events).toContainEqual({ kind: 'proof', index: 0, proof })
    expect(events.at(-1)).toMatchObject({ kind: 'end' })
  })

  test('invalid chunks of a Gemini stream are ignored', () => {
    const decoder = geminiCodec.streamDecoder()
    const events = [
      ...decoder.push(
        Buffer.from('data: [DONE]\r\n\r\ndata: {"candidates":[null,7]}\r\n\r\n: comment\r\n\r\n'),
      ),
      ...decoder.push(frame({ candidates: [{ content: { parts: [null, 'x', { text: 5 }] } }] })),
      ...decoder.push(text({ text: 'a' }, 'STOP')),
      ...decoder.end(),
    ]
    expect(events.map(({ kind }) => kind)).toEqual(['start', 'part-start', 'text', 'part-end', 'end'])
  })
})

test('the time to read contents of one turn is in proportion to their number', async () => {
  const request = (size: number): Buffer => {
    const content = { role: 'model', parts: [{ functionCall: { name: 'f' } }] }
    return Buffer.from(JSON.stringify({ contents: Array.from({ length: size }, () => content) }))
  }
  const read = (body: Buffer): unknown => geminiCodec.decodeRequest(scanObject(body), new Set())
  expect(await growthOf(3_500, request, read)).toBeLessThan(LINEAR_GROWTH)
})
