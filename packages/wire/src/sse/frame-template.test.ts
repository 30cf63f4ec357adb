import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../../../test/runner/tier.ts'
import { BytePattern, BytesWithNumbers } from './frame-template.ts'
import fc from 'fast-check'

const match = (known: string, text: string): number =>
  new BytesWithNumbers(Buffer.from(known)).endIn(Buffer.from(text), 0)

describe('bytes that frames share', () => {
  test('a stream frame matches the template of an earlier frame even if its sequence number has another value or length', () => {
    const known = '{"type":"x","sequence_number":9,"delta":"'
    expect(match(known, '{"type":"x","sequence_number":9,"delta":"')).toBe(known.length)
    expect(match(known, '{"type":"x","sequence_number":12345,"delta":"rest')).toBe(known.length + 4)
  })

  test.each([
    '{"type":"x","sequence_number":,"delta":"',
    '{"type":"x","sequence_number":-1,"delta":"',
    '{"type":"x","sequence_number":1.5,"delta":"',
    '{"type":"x","sequence_number":1,"other":"',
    '{"type":"y","sequence_number":1,"delta":"',
    '{"type":"x","sequence_number":1',
  ])(
    'a stream frame does not match a template if it differs in more than its sequence number: %s',
    (text) => {
      expect(match('{"type":"x","sequence_number":9,"delta":"', text)).toBe(-1)
    },
  )

  test('a stream frame matches the template of an earlier frame even if its token counts differ', () => {
    const known = '{"candidatesTokenCount": 9,"totalTokenCount":10,"details":[{"tokenCount":1}]}'
    const other = '{"candidatesTokenCount": 123,"totalTokenCount":9,"details":[{"tokenCount":22}]}'
    expect(match(known, other)).toBe(other.length)
    expect(match(known, other.replace('22', '"22"'))).toBe(-1)
    expect(match(known, other.replace('candidates', 'thoughts'))).toBe(-1)
    expect(match('"text":"TokenCount\\": 9"', '"text":"TokenCount\\": 10"')).toBe(-1)
  })

  test('a stream frame does not match a template if it differs in a number that is not a sequence number or a token count', () => {
    expect(match('{"number":9,', '{"number":9,"a"')).toBe(12)
    expect(match('{"number":9,', '{"number":10,"a"')).toBe(-1)
    expect(new BytesWithNumbers(Buffer.from('abc')).plain).toEqual(Buffer.from('abc'))
  })
})

describe('numbers that have not changed so far', () => {
  const known = '{"promptTokenCount":7,"candidatesTokenCount":9,"totalTokenCount":16,"text":"'
  const frame = (...counts: readonly number[]): string =>
    ['{"promptTokenCount":', ',"candidatesTokenCount":', ',"totalTokenCount":']
      .map((mark, at) => `${mark}${counts[at]}`)
      .join('') + ',"text":"'

  test('the numbers in a stream frame may change at any time, and change back, and its template still matches', () => {
    const bytes = new BytesWithNumbers(Buffer.from(known))
    for (const text of [
      frame(7, 9, 16),
      frame(7, 10, 17),
      frame(7, 100, 107),
      frame(8, 100, 16),
      frame(12345, 9, 16),
      frame(7, 9, 16),
    ])
      expect(bytes.endIn(Buffer.from(`${text}rest`), 0)).toBe(text.length)
    expect(bytes.endIn(Buffer.from(frame(7, 9, 16).replace('16', '-16')), 0)).toBe(-1)
    expect(bytes.endIn(Buffer.from(frame(7, 9, 16).replace('7', '')), 0)).toBe(-1)
  })

  test("a stream frame's number at the end of its template is matched with all of its digits, even if it has more than before", () => {
    const bytes = new BytesWithNumbers(Buffer.from('"a":1,"sequence_number":12'))
    expect(bytes.endIn(Buffer.from('"a":1,"sequence_number":12'), 0)).toBe(26)
    expect(bytes.endIn(Buffer.from('"a":1,"sequence_number":123}'), 0)).toBe(27)
  })
})

test("a byte pattern of any length matches only the same bytes at the given position, and never bytes beyond a buffer's end", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(20),
      fc.nat(20),
      fc.option(fc.nat(39)),
      (pattern, before, after, changed) => {
        const memory = Buffer.concat([Buffer.alloc(before, 1), pattern, Buffer.alloc(after, 2)])
        const end = before + pattern.length
        const known = new BytePattern(Buffer.from(pattern))
        expect(known.endIn(memory, before)).toBe(end)
        expect(known.endIn(memory.subarray(before), 0)).toBe(pattern.length)
        // The buffer continues after the end of a read.
        if (pattern.length > 0) expect(known.endIn(memory.subarray(0, end - 1), before)).toBe(-1)
        if (changed === null || changed >= pattern.length) return
        memory[before + changed] = (memory[before + changed] as number) ^ 0x80
        expect(known.endIn(memory, before)).toBe(-1)
      },
    ),
    { numRuns: lawRuns(2_000) },
  )
})
