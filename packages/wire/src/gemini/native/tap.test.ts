import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../../usage.ts'
import { GeminiTap } from './tap.ts'

const frame = (value: object): string => `data: ${JSON.stringify(value)}\r\n\r\n`
const chunk = (text: string, tokens: number, finishReason?: string): string =>
  frame({
    candidates: [
      { content: { parts: [{ text }], role: 'model' }, ...(finishReason && { finishReason }), index: 0 },
    ],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: tokens, totalTokenCount: 10 + tokens },
    modelVersion: 'm',
  })

function watched(...frames: readonly string[]): { tap: GeminiTap; forwarded: string; complete: boolean } {
  const tap = new GeminiTap()
  const forwarded = frames.map((one) => tap.push(Buffer.from(one)).forward?.toString() ?? '').join('')
  const { complete } = tap.end()
  return { tap, forwarded, complete }
}

describe('a native Gemini stream', () => {
  test('a native Gemini stream is forwarded up to the chunk with the finish reason, which waits for the charge', () => {
    const before = chunk('Hel', 1) + chunk('lo', 2)
    const behind = frame({
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
    })
    const { tap, forwarded, complete } = watched(before, chunk('.', 3, 'STOP'), behind)
    expect(forwarded).toBe(before)
    expect(tap.finalBytes(NO_USAGE).toString()).toBe(chunk('.', 3, 'STOP') + behind)
    expect(complete).toBe(true)
    expect(tap.usage).toMatchObject({ input: 10, output: 5 })
    expect(tap.text).toBe('Hello.')
  })

  test('a native Gemini stream that ends without a finish reason counts as cut off, even after a complete text', () => {
    const { tap, complete } = watched(chunk('Hello.', 1))
    expect(complete).toBe(false)
    expect(tap.finalBytes(NO_USAGE)).toHaveLength(0)
  })

  test('a native Gemini stream is complete where the prompt was refused', () => {
    const { complete } = watched(frame({ promptFeedback: { blockReason: 'SAFETY' } }))
    expect(complete).toBe(true)
  })

  test('a native Gemini stream is complete once each of its candidates has a finish reason', () => {
    const candidate = (index: number, finishReason?: string): string =>
      frame({
        candidates: [{ index, content: { parts: [{ text: 'a' }] }, ...(finishReason && { finishReason }) }],
      })
    expect(watched(candidate(0), candidate(1), candidate(0, 'STOP')).complete).toBe(false)
    expect(watched(candidate(0), candidate(1), candidate(0, 'STOP'), candidate(1, 'STOP')).complete).toBe(
      true,
    )
  })

  test('an upstream error in a native Gemini stream ends the stream, and the usage reported before it is kept', () => {
    const { tap, forwarded, complete } = watched(
      chunk('Hel', 1),
      frame({ error: { code: 503, message: 'Full.', status: 'UNAVAILABLE' } }),
    )
    expect(forwarded).toBe(chunk('Hel', 1))
    expect(complete).toBe(false)
    expect(tap.error).toMatchObject({ afterContent: true })
    expect(tap.usage).toMatchObject({ input: 10, output: 1 })
  })

  test('a native Gemini stream counts function calls and thoughts as generated text', () => {
    const parts = [{ text: 'I think.', thought: true }, { functionCall: { name: 'f', args: { a: 1 } } }]
    const { tap } = watched(frame({ candidates: [{ content: { parts } }] }))
    expect(tap.text).toBe('I think.f{"a":1}')
  })

  test('a native Gemini stream whose last chunk has a large signature is forwarded unchanged, however the network divides it', () => {
    const large = frame({
      candidates: [
        { content: { parts: [{ text: '', thoughtSignature: 'A'.repeat(200_000) }] }, finishReason: 'STOP' },
      ],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
    })
    for (const size of [1_000, 70_000, 300_000]) {
      const tap = new GeminiTap()
      let text = ''
      for (let at = 0; at < large.length; at += size)
        text += tap.push(Buffer.from(large.slice(at, at + size))).forward?.toString() ?? ''
      expect(tap.end().complete).toBe(true)
      expect(text + tap.finalBytes(NO_USAGE).toString()).toBe(large)
      expect(tap.usage).toMatchObject({ input: 10, output: 5 })
    }
  })

  test('a native Gemini stream that breaks off ends in an error in the format of Gemini', () => {
    const text = new GeminiTap().failureFrame({ type: 'api_error', code: 'upstream_error', message: 'Gone.' })
    expect(text.toString()).toMatch(
      /^data: \{"error":\{"code":500,"message":"Gone\.","status":"INTERNAL".*\r\n\r\n$/,
    )
  })
})
