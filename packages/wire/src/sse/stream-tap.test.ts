import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LargeEvent } from './stream-tap.ts'
import { frameData, eventNameOfFrame } from './frame-splitter.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

const field = fc.tuple(
  fc.constantFrom('data: ', 'data:', 'event: ', 'event:', 'id: ', ': ', 'other', 'datax: '),
  fc.constantFrom('{"a":1}', '[1,', '2]', 'ping', 'error', '', ' '),
)

test('a large stream event that arrives in pieces has the same data and end as one that arrives in one piece', () => {
  fc.assert(
    fc.property(
      fc.array(field, { minLength: 1, maxLength: 5 }),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.integer({ min: 1, max: 40 }),
      (fields, lineEnd, size) => {
        const frame = [...fields.map((parts) => parts.join('')), ''].map((line) => line + lineEnd).join('')
        const bytes = Buffer.from(`${frame}data: next\n\n`)
        const event = new LargeEvent()
        let end = -1
        let at = 0
        for (; end < 0; at += size) end = event.push(bytes.subarray(at, at + size))
        // The LF of a last CR LF may come later; it then begins the next frame as an empty line.
        expect(bytes.toString('utf8', at - size + end)).toBeOneOf(['data: next\n\n', '\ndata: next\n\n'])
        // The outline contains line ends as white space.
        expect((event.data ?? '').trim().replaceAll(/\s+/g, ' ')).toBe(
          (frameData(frame) ?? '').trim().replaceAll(/\s+/g, ' '),
        )
        expect(eventNameOfFrame(event.frame) ?? '').toBe(eventNameOfFrame(frame) ?? '')
      },
    ),
    { numRuns: lawRuns(3000) },
  )
})
