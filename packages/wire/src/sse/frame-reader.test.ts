import { expect, test } from 'vitest'
import { WireError } from '../wire-error.ts'
import { MAX_EVENT_BYTES } from './frame-splitter.ts'
import { GeminiStreamDecoder } from '../gemini/stream/decoder.ts'
import { MessagesStreamDecoder } from '../messages/stream/decoder.ts'
import { ResponsesStreamDecoder } from '../responses/stream/decoder.ts'

const event = (data: { readonly type: string; readonly [name: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const began = (index: number): string =>
  event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } })
const said = (index: number): string =>
  event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'aaaa' } })

test('a messages stream frame that begins like an earlier one, but differs in its end, is read as a different frame', () => {
  const { length } = said(0)
  // The frame is cut after all the bytes that it shares with the others.
  const cut = length - 6
  const decoder = new MessagesStreamDecoder()
  const events = [
    event({ type: 'message_start', message: { id: 'm', content: [] } }) + began(0) + began(1) + said(0),
    said(0) + said(0) + said(0).slice(0, cut),
    // If bytes were removed, a frame of the other block would stand at this position.
    `${said(0).slice(cut)}:${' '.repeat(length - 3)}\n\n${said(1)}`,
  ].flatMap((chunk) => decoder.push(Buffer.from(chunk)))
  const texts = events.filter((one) => one.kind === 'text').map(({ index }) => index)
  expect(texts).toEqual([0, 0, 0, 0, 1])
})

test('a stream event that is too large fails the stream only after the events before it were decoded', () => {
  const begin = event({ type: 'message_start', message: { id: 'm', content: [] } }) + began(0)
  const large = Buffer.from(`${begin}${said(0)}data: ${'x'.repeat(MAX_EVENT_BYTES)}`)
  for (const way of ['push', 'end'] as const) {
    const decoder = new MessagesStreamDecoder()
    expect(decoder.push(large)).toEqual(new MessagesStreamDecoder().push(Buffer.from(begin + said(0))))
    expect(() => (way === 'push' ? decoder.push(Buffer.from('x')) : decoder.end())).toThrow(WireError)
  }
  expect(() => new MessagesStreamDecoder().push(large.subarray(begin.length + said(0).length))).toThrow(
    WireError,
  )
})

test.each([
  [
    'Gemini',
    () => new GeminiStreamDecoder(),
    (text: string) => ({
      candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }],
    }),
  ],
  [
    'the Responses API',
    () => new ResponsesStreamDecoder(),
    (text: string) => ({
      type: 'response.completed',
      response: {
        id: 'r',
        status: 'completed',
        output: [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text }] }],
      },
    }),
  ],
])('the last event of a stream of %s may lack its blank line at any size', (_, decoder, last) => {
  for (const size of [10, 100_000]) {
    const [reading, whole] = [decoder(), decoder()]
    const bytes = Buffer.from(`data: ${JSON.stringify(last('x'.repeat(size)))}`)
    const events = [...reading.push(bytes), ...reading.end()]
    expect(events.at(-1)).toMatchObject({ kind: 'end' })
    expect(events).toEqual([...whole.push(Buffer.concat([bytes, Buffer.from('\n\n')])), ...whole.end()])
  }
})
