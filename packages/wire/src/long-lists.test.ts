import { expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import { messagesCodec } from './messages/index.ts'

const list = (size: number, item: (index: number) => unknown): unknown[] =>
  Array.from({ length: size }, (_, index) => item(index))
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
]

test.each(LISTS)(
  'the time to convert a list is in proportion to its length: %s',
  { timeout: 60_000 },
  async (_, size, make, work) => {
    expect(await growthOf(size, make, work)).toBeLessThan(LINEAR_GROWTH)
  },
)
