import { describe, expect, test } from 'vitest'
import { messagesCodec } from '../messages/index.ts'
import { KnownFrameTemplates } from './frame-loop.ts'
import { SharedTemplates } from './shared-templates.ts'

const frame = (kind: number, text: string): string => `data: ${JSON.stringify({ kind, text })}\n\n`

function stream(shared: SharedTemplates): {
  readonly known: KnownFrameTemplates
  learn(kind: number): void
  texts(bytes: Buffer): string[]
} {
  const known = new KnownFrameTemplates(
    (data) => ({ index: 0, text: (JSON.parse(data) as { text: string }).text }),
    shared,
  )
  return {
    known,
    learn: (kind) => known.learn(Buffer.from(frame(kind, 'earlier')), frame(kind, 'earlier').slice(6, -2)),
    texts(bytes) {
      known.newBytes()
      const texts: string[] = []
      for (let at = 0; at < bytes.length; ) {
        const match = known.match(bytes, at)
        if (!match) break
        texts.push(match.textIn(bytes) ?? '')
        at = match.end
      }
      return texts
    },
  }
}

describe('a template that one stream learned', () => {
  test("a stream's frame template is used by another stream only if a part of the response has begun in both streams", () => {
    const shared = new SharedTemplates()
    const [first, second] = [stream(shared), stream(shared)]
    first.learn(1)
    second.known.reset()
    expect(second.texts(Buffer.from(frame(1, 'a')))).toEqual([])
    first.known.reset()
    first.learn(1)
    expect(stream(shared).texts(Buffer.from(frame(1, 'a')))).toEqual([])
    expect(second.texts(Buffer.from(frame(1, 'a') + frame(1, 'b')))).toEqual(['a', 'b'])
    second.known.reset()
    expect(second.texts(Buffer.from(frame(2, 'a')))).toEqual([])
  })

  test('two streams that take turns with one shared frame template each read the texts of their own chunks', () => {
    const shared = new SharedTemplates()
    const [first, second] = [stream(shared), stream(shared)]
    for (const { known } of [first, second]) known.reset()
    first.learn(1)
    const long = Buffer.from(frame(1, 'a longer text') + frame(1, 'another') + frame(1, 'a third'))
    const short = Buffer.from(frame(1, 'x') + frame(1, 'y') + frame(2, 'z'))
    for (let turn = 0; turn < 3; turn++) {
      expect(first.texts(long)).toEqual(['a longer text', 'another', 'a third'])
      expect(second.texts(short)).toEqual(['x', 'y'])
    }
  })

  test('a stream frame is read by a shared template only if all bytes match, even if another stream has just used the template', () => {
    const shared = new SharedTemplates()
    const [first, second] = [stream(shared), stream(shared)]
    for (const { known } of [first, second]) known.reset()
    first.learn(1)
    expect(first.texts(Buffer.from(frame(1, 'a') + frame(1, 'b').slice(0, -5)))).toEqual(['a'])
    const other = Buffer.from(frame(2, 'a') + frame(2, 'b'))
    expect(second.known.match(other, frame(2, 'a').length)).toBeUndefined()
  })

  test('a shared frame template is forgotten once eight other templates were used or made after its last use', () => {
    const shared = new SharedTemplates()
    const teacher = stream(shared)
    teacher.known.reset()
    for (let kind = 0; kind < 8; kind++) {
      teacher.learn(kind)
      teacher.known.reset()
    }
    const knows = (kind: number): boolean => {
      const reader = stream(shared)
      reader.known.reset()
      return reader.texts(Buffer.from(frame(kind, 'a'))).length > 0
    }
    expect(knows(0)).toBe(true)
    teacher.learn(8)
    expect([knows(0), knows(1), knows(8)]).toEqual([true, false, true])
  })
})

test('an error event of a messages stream is decoded as a failure, even if it has a text and an earlier stream had the same event', () => {
  const begun =
    'data: {"type":"message_start","message":{"id":"msg_1"}}\n\n' +
    'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
  const error =
    'event: error\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n'
  for (let i = 0; i < 2; i++)
    expect(
      messagesCodec
        .streamDecoder()
        .push(Buffer.from(begun + error))
        .slice(2),
    ).toMatchObject([{ kind: 'failure' }])
})

test('a messages stream with a delta before message_start is decoded as a failure, even if valid streams had the same delta', () => {
  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const delta = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hi' } })
  const begun =
    event('message_start', { message: { id: 'msg_1', usage: { input_tokens: 1 } } }) +
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  for (let i = 0; i < 2; i++)
    expect(
      messagesCodec
        .streamDecoder()
        .push(Buffer.from(begun + delta + delta))
        .slice(2),
    ).toMatchObject([
      { kind: 'text', text: 'Hi' },
      { kind: 'text', text: 'Hi' },
    ])
  expect(messagesCodec.streamDecoder().push(Buffer.from(delta))).toMatchObject([{ kind: 'failure' }])
})
