import { expect, test } from 'vitest'
import { StatedEnds } from './stated-ends.ts'
import { StreamEvent } from './stream-event.ts'

const CHAT = { dialect: 'chat', signsReasoning: false } as const
const event = (data: string): StreamEvent => new StreamEvent(`data: ${data}\n\n`, CHAT as never)
const piece = (content: string, reason = 'null'): string =>
  `{"choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":${reason}}]}`

test.each([
  ['text', 'go on', 0],
  ['no text', '', 1],
])(
  'an event that states an end waits, and its end counts unless an event with %s follows',
  (_, next, ends) => {
    const held = event(piece('end', '"stop"'))
    const following = event(piece(next))
    const events = new StatedEnds()
    expect(events.add(event(piece('first')))).toHaveLength(1)
    expect(events.add(held)).toEqual([])
    expect(events.add(following)).toEqual([held, following])
    expect(held.read?.ends).toHaveLength(ends)
    expect(events.end()).toEqual([])
  },
)

test('an end is found in an event of several lines of data', () => {
  const events = new StatedEnds()
  const held = event(piece('end', '\ndata: "stop"'))
  expect(events.add(held)).toEqual([])
  expect([events.length, events.end()]).toEqual([held.frame.length, [held]])
})
