import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { anyCharacter } from '../../../test/generators/characters.ts'
import { codePointsIn } from './reply.ts'
import { CopyableText } from './frame-writer.ts'
import { TextBuffer } from './text-buffer.ts'

const pieces = fc.array(
  fc.oneof(
    fc.string({ maxLength: 80 }),
    fc.string({ unit: anyCharacter, maxLength: 80 }),
    fc.constant('word '.repeat(30)),
  ),
)

test('the generated text of a stream is joined from its pieces, and the bytes of each are counted', () => {
  fc.assert(
    fc.property(pieces, (texts) => {
      const emitted = new TextBuffer()
      for (const text of texts) expect(emitted.add(text)).toBe(Buffer.byteLength(text))
      expect(emitted.toString()).toBe(Buffer.from(texts.join('')).toString())
    }),
  )
})

test('the generated text of a stream is joined from pieces of bytes and pieces of text', () => {
  const emitted = new TextBuffer()
  const bytes = Buffer.from('…of a stream…')
  emitted.append(bytes, 3, bytes.length - 3)
  expect(emitted.add(' é')).toBe(3)
  expect(emitted.toString()).toBe('of a stream é')
})

test('generated text of a stream beyond eight megabytes is counted but not kept, in any pieces', () => {
  const MOST = 8 * 1024 * 1024
  const emitted = new TextBuffer()
  // Doubling the buffer here would exceed the maximum.
  const first = (MOST * 5) / 8
  emitted.add('x'.repeat(first))
  const piece = 'y'.repeat(40)
  for (let length = first; length < MOST + 100_000; length += piece.length)
    expect(emitted.add(piece)).toBe(40)
  expect(emitted.toString().length).toBeLessThanOrEqual(MOST)
  expect(emitted.toString().length).toBeGreaterThan(MOST - 40)
})

const plain = fc.string({ maxLength: 80, size: 'max', unit: fc.constantFrom('a', ' ', 'é', '詩', '🙂') })
const escaped = fc.string({
  maxLength: 80,
  size: 'max',
  unit: fc.constantFrom('a', '"', '\\', '\n', '\t', 'é'),
})

test('generated text that was forwarded as undecoded JSON bytes is recorded as decoded text', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(plain, escaped), { minLength: 1, maxLength: 12 }), (texts) => {
      const literals = texts.map((text) => JSON.stringify(text))
      const bytes = Buffer.from(literals.join(','))
      let at = 0
      let event: CopyableText | undefined
      for (const [i, literal] of literals.entries()) {
        const from = at + 1
        const to = from + Buffer.byteLength(literal) - 2
        const escapes = to - from - Buffer.byteLength(texts[i] as string)
        const match = { from, to, escapes, codePoints: codePointsIn(texts[i] as string) }
        if (event) event.add(match)
        else event = new CopyableText('text', 0, bytes, match)
        at = to + 2
      }
      const said = texts.join('')
      const kept = new TextBuffer()
      expect(kept.add('before ')).toBe(7)
      expect(kept.addCopied(event as CopyableText)).toBe(Buffer.byteLength(said))
      expect(kept.toString()).toBe(`before ${said}`)
      expect(event?.text).toBe(said)
      const first = event?.takeFirst()
      expect(first).toEqual({ kind: 'text', index: 0, text: texts[0] })
      const rest = texts.slice(1).join('')
      expect(event).toMatchObject({ text: rest, frames: texts.length - 1, codePoints: codePointsIn(rest) })
      const size = literals.slice(1).reduce((sum, literal) => sum + Buffer.byteLength(literal) - 2, 0)
      expect(event).toMatchObject({ size, escapes: size - Buffer.byteLength(rest) })
    }),
    { numRuns: lawRuns(1_000) },
  )
})

test('generated text forwarded as undecoded JSON bytes is counted, but not recorded beyond eight megabytes', () => {
  const size = 5 * 1024 * 1024
  const text = new CopyableText('text', 0, Buffer.alloc(size, 'z'), {
    from: 0,
    to: size,
    escapes: 0,
    codePoints: size,
  })
  const emitted = new TextBuffer()
  for (let i = 0; i < 2; i++) expect(emitted.addCopied(text)).toBe(size)
  expect(emitted.toString().length).toBe(size)
})
