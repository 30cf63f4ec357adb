import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readTextFile } from './text-file.ts'

const NOTHING = { mediaType: '', name: '' }
const TEXT = 'A letter of some length, to Ann and to everyone else.'

function utf32(text: string, isLittle: boolean): Buffer {
  const points = Array.from(text, (character) => character.codePointAt(0) ?? 0)
  const bytes = Buffer.alloc(4 * points.length)
  for (const [at, point] of points.entries())
    if (isLittle) bytes.writeUInt32LE(point, 4 * at)
    else bytes.writeUInt32BE(point, 4 * at)
  return bytes
}

const ENCODINGS: readonly (readonly [string, (text: string) => Buffer])[] = [
  ['UTF-8', (text) => Buffer.from(text)],
  ['UTF-8 with a mark', (text) => Buffer.from(`\ufeff${text}`)],
  ['UTF-16 (little endian)', (text) => Buffer.from(text, 'utf16le')],
  ['UTF-16 (big endian)', (text) => Buffer.from(text, 'utf16le').swap16()],
  ['UTF-16 with a mark (little endian)', (text) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  ['UTF-16 with a mark (big endian)', (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ['UTF-32 (little endian)', (text) => utf32(text, true)],
  ['UTF-32 (big endian)', (text) => utf32(text, false)],
  ['UTF-32 with a mark (little endian)', (text) => utf32(`\ufeff${text}`, true)],
  ['UTF-32 with a mark (big endian)', (text) => utf32(`\ufeff${text}`, false)],
]

test.each(ENCODINGS)(
  'a file in %s is a text by its content, and a changed text has the same encoding',
  (_name, encode) => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii', minLength: 20 }), (more) => {
        const text = `${TEXT} ${more}`
        const file = readTextFile(encode(text), NOTHING)
        expect(file?.text.replace('\ufeff', '')).toBe(text)
        const changed = (file?.text ?? '').replace('Ann', '[[NAME]]')
        expect(file?.encode(changed)).toEqual(encode(text.replace('Ann', '[[NAME]]')))
      }),
    )
  },
)

test('a text in another charset is read as its media type states, and is written in UTF-8 where it changes', () => {
  // "привет Ann" in windows-1251
  const bytes = Buffer.concat([Buffer.from([0xef, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]), Buffer.from(' Ann')])
  const file = readTextFile(bytes, { mediaType: 'text/plain; charset=windows-1251', name: '' })
  expect(file?.text).toBe('привет Ann')
  expect(file?.encode('привет')).toEqual(Buffer.from('\ufeffпривет'))
})

test('a text whose bytes are those of ASCII is found, whatever its media type states', () => {
  for (const charset of ['utf-16le', '"utf-16"', 'utf-7', 'ebcdic', 'x'])
    for (const bytes of [
      Buffer.from(TEXT),
      Buffer.concat([Buffer.from([0xff]), Buffer.from(TEXT), Buffer.from([0xc3])]),
    ])
      expect(readTextFile(bytes, { mediaType: `text/plain;charset=${charset}`, name: '' })?.text).toContain(
        TEXT,
      )
})

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
test.each([
  ['an image', hex('89504e470d0a1a0a0000000d49484452')],
  ['a photograph', hex('ffd8ffe000104a46494600')],
  ['an archive', hex('504b030414000000080000002100')],
  ['a recording', hex('4944330400000000000f')],
  ['a PDF', Buffer.from('%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n')],
  ['noise', Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7919 + (at >> 3) * 31) % 256))],
  ['a quiet recording', Buffer.from(Array.from({ length: 4096 }, (_, at) => (at % 2 === 0 ? at % 5 : 0)))],
])('%s is no text by its content, and one by its name or media type', (_what, bytes) => {
  expect(readTextFile(bytes, NOTHING)).toBeUndefined()
  expect(readTextFile(bytes, { mediaType: 'application/octet-stream', name: 'a.bin' })).toBeUndefined()
  expect(readTextFile(bytes, { mediaType: '', name: 'notes.md' })).toBeDefined()
  expect(readTextFile(bytes, { mediaType: 'text/csv', name: '' })).toBeDefined()
})

test('any bytes that are stated to be a text are read, and stay as they are if nothing changes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), (given) => {
      const bytes = Buffer.from(given)
      const file = readTextFile(bytes, { mediaType: 'text/plain', name: '' })
      expect(file).toBeDefined()
    }),
  )
})
