import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventSplitter } from './event-splitter.ts'

const STREAM =
  ': still here\n\nevent: call\nid: 7\ndata: {"a":1}\n\nevent: gap\ndata: one\ndata: two\n\nevent: call\ndata: cut'

test('the console reads the same events however a stream is divided, and skips comments and unfinished events', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 6 }), (cuts) => {
      const splitter = new EventSplitter()
      const places = [0, ...cuts.toSorted((a, b) => a - b), STREAM.length]
      const events = places.flatMap((place, index) => splitter.push(STREAM.slice(place, places[index + 1])))
      expect(events).toEqual([
        { name: 'call', data: '{"a":1}', id: '7' },
        { name: 'gap', data: 'one\ntwo' },
      ])
    }),
  )
})
