import { expect, test } from 'vitest'
import { eventOrderOf, type EventOrder } from './event-order.ts'
import { RewrittenEvents } from './rewritten-events.ts'

test('a repaired stream of more events than are remembered stays as it is from there on', () => {
  const events = new RewrittenEvents(eventOrderOf('messages') as EventOrder)
  const begin = (index: number): object => ({ type: 'content_block_start', index })
  const framesFor = (event: object): string | undefined => events.framesFor({ ...event }, '')
  for (let index = 0; index < 32_768; index++) {
    framesFor(begin(index))
    framesFor({ type: 'content_block_stop', index })
  }
  expect(framesFor(begin(0))).toBeUndefined()
  expect(events.missingEnd('event: message_stop\ndata: {"type":"message_stop"}\n\n')).toBe('')
})
