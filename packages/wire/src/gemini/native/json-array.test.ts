import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../../../test/fixtures/pace.ts'
import { EventsToJsonArray } from './json-array.ts'

function written(...chunks: readonly (string | Buffer)[]): string {
  const array = new EventsToJsonArray()
  const parts = chunks.map((chunk) => array.push(Buffer.from(chunk as string)))
  return Buffer.concat([...parts, array.end()]).toString()
}

describe('a stream as one array', () => {
  test('a Gemini stream that is sent as one JSON array has the data of each event as an element', () => {
    expect(written('data: {"a":1}\r\n\r\ndata: {"b":"é"}\r\n\r\n')).toBe('[{"a":1},\r\n{"b":"é"}]')
    expect(written('data:{"a":1}\n\ndata:  {"b":2}\n\n')).toBe('[{"a":1},\r\n {"b":2}]')
    expect(written('data: 1\r\rdata: 2')).toBe('[1,\r\n2]')
  })

  test('a Gemini stream that is sent as one JSON array has no comments or other fields, and joins the lines of an event', () => {
    expect(written(': hi\n\nevent: x\nid: 7\ndata: {"a":\ndata: 1}\n\ndata\n\n')).toBe('[{"a":\n1}]')
  })

  test('a Gemini stream that is sent as one JSON array is an empty array if it has no events', () => {
    expect(written()).toBe('[]')
    expect(written(': hi\r\n\r\n')).toBe('[]')
  })

  test.each(['\r', '\n', '\r\n', 'data: 1\r'])(
    'a stream becomes one JSON array in time proportional to its length, however often it contains %j',
    async (piece) => {
      const chunk = (size: number): Buffer => Buffer.from(piece.repeat(size / piece.length))
      expect(await growthOf(32_000, chunk, (bytes) => written(bytes))).toBeLessThan(LINEAR_GROWTH)
    },
  )

  test('a Gemini stream sent as one JSON array has the same values and bytes however it is divided', () => {
    const ends = fc.constantFrom('\n', '\r\n', '\r')
    fc.assert(
      fc.property(fc.array(fc.json(), { maxLength: 4 }), ends, fc.nat(), (values, end, seed) => {
        const bytes = Buffer.from(values.map((value) => `data: ${value}${end}${end}`).join(''))
        const array = new EventsToJsonArray()
        const parts: Buffer[] = []
        for (let at = 0, step = seed; at < bytes.length; step = (step * 7 + 3) % 11) {
          const to = at + 1 + (step % 5)
          parts.push(array.push(bytes.subarray(at, to)))
          at = to
        }
        const text = Buffer.concat([...parts, array.end()]).toString()
        expect(text).toBe(written(bytes))
        expect(JSON.parse(text)).toEqual(values.map((value) => JSON.parse(value) as unknown))
      }),
    )
  })
})
