import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../test/generators/characters.ts'
import { CopyableText, textFrameOf, FrameWriter } from './frame-writer.ts'

const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 200 }),
  // Includes unpaired surrogates.
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 })
    .map((units) => String.fromCharCode(...units)),
  fc.integer({ min: 1, max: 30_000 }).map((length) => '…x'.repeat(length)),
  fc.constant('plain '.repeat(3_000)),
  fc.constant('too large for the buffer '.repeat(12_000)),
)
/** A text to write, as a string or as a range of its bytes. */
const piece = fc.oneof(
  text,
  fc.record({ bytes: text.map((value) => Buffer.from(value)), from: fc.nat(300), size: fc.nat(400_000) }),
)

test('the writer of stream frames writes texts and bytes in order', () => {
  const writer = new FrameWriter()
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const expected = pieces.map((one) => {
        if (typeof one === 'string') {
          writer.text(one)
          return Buffer.from(one)
        }
        const from = Math.min(one.from, one.bytes.length)
        const to = Math.min(from + one.size, one.bytes.length)
        writer.bytes(one.bytes, from, to)
        return one.bytes.subarray(from, to)
      })
      expect(writer.take().equals(Buffer.concat(expected))).toBe(true)
    }),
  )
})

test('the bytes taken from the writer of stream frames are not changed by later writes', () => {
  const writer = new FrameWriter()
  writer.text('first')
  const first = writer.take()
  writer.text('other')
  writer.take()
  expect(first.toString()).toBe('first')
})

test.each([
  ['short ones', ['a', '', 'of a stream']],
  ['long ones', ['a', 'of a stream '.repeat(9), 'b']],
  ['more than fits at a time', Array.from({ length: 3_000 }, (_, i) => `text ${i} `.repeat(12))],
])('each of several consecutive texts of a stream is written as a frame of its own: %s', (_, texts) => {
  const bytes = Buffer.from(texts.join(''))
  let event: CopyableText | undefined
  let at = 0
  for (const { length } of texts) {
    const match = { from: at, to: at + length, escapes: 0, codePoints: length }
    if (event) event.add(match)
    else event = new CopyableText('text', 0, bytes, match)
    at += length
  }
  const writer = new FrameWriter()
  writer.text('before ')
  writer.copied(textFrameOf('{"text":', '}\n\n'), event as CopyableText)
  const frames = texts.map((one) => `{"text":"${one}"}\n\n`)
  expect(writer.take().toString()).toBe(`before ${frames.join('')}`)
})
