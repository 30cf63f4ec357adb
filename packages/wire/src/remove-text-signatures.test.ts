import { describe, expect, test } from 'vitest'
import type { StreamEncoder } from './codec.ts'
import type { ReplyEvent } from './reply.ts'
import { CopyableText, FrameWriter } from './frame-writer.ts'
import { TextSignatureRemover } from './remove-text-signatures.ts'

const start = (index: number): ReplyEvent => ({ kind: 'part-start', index, part: { kind: 'thinking' } })
const proof = (index: number, signs?: 'call' | 'text'): ReplyEvent => ({
  kind: 'proof',
  index,
  proof: { protocol: 'gemini', value: 's', ...(signs && { signs }) },
})
const end = (index: number): ReplyEvent => ({ kind: 'part-end', index })

/** Events that reach the inner encoder if each is pushed separately. */
function passed(events: readonly ReplyEvent[]): ReplyEvent[] {
  const seen: ReplyEvent[] = []
  const inner = {
    push: (some: readonly ReplyEvent[]) => (seen.push(...some), ''),
  } as unknown as StreamEncoder
  const encoder = new TextSignatureRemover(inner)
  for (const event of events) encoder.push([event])
  return seen
}

describe('a stream without signatures of texts', () => {
  test('a stream for clients without text signatures has no thoughts that only sign a text', () => {
    expect(passed([start(1), proof(1, 'text'), end(1)])).toEqual([])
  })

  test('a stream for clients without text signatures keeps thoughts that have text or sign a call', () => {
    const others: ReplyEvent[] = [
      start(0),
      { kind: 'thinking', index: 0, text: 'Hm.' },
      end(0),
      start(1),
      proof(1, 'call'),
      end(1),
      start(2),
      proof(2),
      end(2),
      start(3),
      end(3),
    ]
    expect(passed(others)).toEqual(others)
  })

  test("a thought's start event is sent before its text also if that text is forwarded as undecoded bytes", () => {
    const seen: string[] = []
    const inner = {
      push: (some: readonly ReplyEvent[]) => (seen.push(...some.map(({ kind }) => kind)), ''),
      copy: () => (seen.push('copied'), true),
    } as unknown as StreamEncoder
    const encoder = new TextSignatureRemover(inner)
    encoder.push([start(0)])
    const text = new CopyableText('thinking', 0, Buffer.from('"Hm."'), {
      from: 1,
      to: 4,
      escapes: 0,
      codePoints: 3,
    })
    expect([encoder.copy(text, new FrameWriter()), encoder.copy(text, new FrameWriter())]).toEqual([
      true,
      true,
    ])
    encoder.push([end(0)])
    expect(seen).toEqual(['part-start', 'copied', 'copied', 'part-end'])
  })
})
