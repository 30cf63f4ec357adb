import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../test/generators/characters.ts'
import { EmittedText } from './emitted-text.ts'

const pieces = fc.array(
  fc.oneof(
    fc.string({ maxLength: 80 }),
    fc.string({ unit: anyCharacter, maxLength: 80 }),
    fc.constant('word '.repeat(30)),
  ),
)

test('pieces become one text, and each tells its bytes', () => {
  fc.assert(
    fc.property(pieces, (texts) => {
      const emitted = new EmittedText()
      for (const text of texts) expect(emitted.add(text)).toBe(Buffer.byteLength(text))
      expect(emitted.toString()).toBe(Buffer.from(texts.join('')).toString())
    }),
  )
})

test('pieces of bytes join pieces of text', () => {
  const emitted = new EmittedText()
  const bytes = Buffer.from('…of a stream…')
  emitted.append(bytes, 3, bytes.length - 3)
  expect(emitted.add(' é')).toBe(3)
  expect(emitted.toString()).toBe('of a stream é')
})

test('text beyond eight megabytes is counted and not kept, however it comes', () => {
  const MOST = 8 * 1024 * 1024
  const emitted = new EmittedText()
  // Doubling the buffer would exceed the cap here.
  const first = (MOST * 5) / 8
  emitted.add('x'.repeat(first))
  const piece = 'y'.repeat(40)
  for (let length = first; length < MOST + 100_000; length += piece.length)
    expect(emitted.add(piece)).toBe(40)
  expect(emitted.toString().length).toBeLessThanOrEqual(MOST)
  expect(emitted.toString().length).toBeGreaterThan(MOST - 40)
})
