import { expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import { chatCodec } from './chat/index.ts'
import { geminiCodec } from './gemini/index.ts'
import { messagesCodec } from './messages/index.ts'

const list = (size: number, item: (index: number) => unknown): unknown[] =>
  Array.from({ length: size }, (_, index) => item(index))
const bytes = (value: object): Buffer => Buffer.from(JSON.stringify(value))
const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
/** What is read or written, how long its list is, and the work. */
const LISTS: readonly (readonly [string, number, (size: number) => Buffer, (body: Buffer) => unknown])[] = [
  [
    'tool calls in the first event of a messages stream',
    200,
    (size) => {
      const call = { type: 'tool_use', id: 'a', name: 'f', input: { a: 1 } }
      const message = { id: 'm', content: list(size, () => call) }
      return Buffer.from(event({ type: 'message_start', message }))
    },
    (body) => messagesCodec.streamDecoder().push(body),
  ],
  [
    'function calls of a Gemini answer',
    1_500,
    (size) => {
      const parts = list(size, () => ({ functionCall: { name: 'f', args: { a: 1 } } }))
      return bytes({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
    },
    (body) => geminiCodec.decodeReply(body),
  ],
  [
    'function calls of a chunk of Gemini',
    1_500,
    (size) => {
      const parts = list(size, () => ({ functionCall: { name: 'f', args: { a: 1 } } }))
      return Buffer.from(event({ candidates: [{ content: { parts } }] }))
    },
    (body) => geminiCodec.streamDecoder().push(body),
  ],
  [
    'tool calls of a chat answer whose arguments are objects',
    800,
    (size) => {
      const calls = list(size, (i) => ({ id: `c${i}`, function: { name: 'f', arguments: {} } }))
      return bytes({ choices: [{ index: 0, message: { tool_calls: calls }, finish_reason: 'tool_calls' }] })
    },
    (body) => chatCodec.decodeReply(body),
  ],
]

test.each(LISTS)(
  'the time to convert a list is in proportion to its length: %s',
  { timeout: 60_000 },
  async (_, size, make, work) => {
    expect(await growthOf(size, make, work)).toBeLessThan(LINEAR_GROWTH)
  },
)
