import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeUtf8 } from './utf8-encode.ts'

const texts = fc.array(
  fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    // Includes unpaired surrogates.
    fc
      .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 })
      .map((units) => String.fromCharCode(...units)),
    fc.integer({ min: 1, max: 30_000 }).map((length) => '…x'.repeat(length)),
    fc.constant('plain '.repeat(3_000)),
  ),
  { maxLength: 12 },
)

test('texts become the bytes of each, one after the other', () => {
  fc.assert(
    fc.property(texts, (pieces) => {
      expect(encodeUtf8(pieces).equals(Buffer.concat(pieces.map((piece) => Buffer.from(piece))))).toBe(true)
    }),
  )
})

test('the bytes belong to whoever asked: what comes later does not change them', () => {
  const first = encodeUtf8(['first'])
  encodeUtf8(['other'])
  expect(first.toString()).toBe('first')
})
