import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import { boundaryOf, type FormPart, FormReader, isForm } from './multipart.ts'

const B = 'xyz'

function read(body: string | Buffer, pieces = 1, boundary = B): readonly FormPart[] {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body, 'latin1')
  const reader = new FormReader(boundary)
  const size = Math.max(1, Math.ceil(bytes.length / pieces))
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size))
  return reader.end()
}

const field = (name: string, value: string, more = ''): string =>
  `--${B}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
const end = `--${B}--\r\n`

describe('a form', () => {
  test('a multipart form is read to the positions of its parts and the texts of its fields', () => {
    const body = field('file', 'RIFF\r\n--xy\r\n', '; filename="a.wav"') + field('model', 'whisper-1') + end
    for (const pieces of [1, 2, 7, body.length]) {
      const parts = read(body, pieces)
      expect(parts.map(({ name, filename, text }) => ({ name, filename, text }))).toEqual([
        { name: 'file', filename: 'a.wav', text: undefined },
        { name: 'model', filename: undefined, text: 'whisper-1' },
      ])
      expect(parts.map(({ start, end: to }) => body.slice(start, to))).toEqual([
        'RIFF\r\n--xy\r\n',
        'whisper-1',
      ])
    }
  })

  test('a multipart form may have empty fields, types before names, bytes after its end, and names without quotes', () => {
    const typed = `--${B}\r\ncontent-type: text/plain\r\ncontent-disposition: form-data;name=a\r\n\r\n\r\n`
    expect(read(`${typed}${end}rest`)).toMatchObject([{ name: 'a', text: '', contentType: 'text/plain' }])
  })

  test('of a multipart field above 256 KiB only the position is recorded, and its text is not read into memory', () => {
    const [large, model] = read(field('prompt', 'p'.repeat(300_000)) + field('model', 'm') + end, 9)
    expect(large?.text).toBeUndefined()
    expect((large?.end ?? 0) - (large?.start ?? 0)).toBe(300_000)
    expect(model?.text).toBe('m')
  })

  test('any contents of a multipart form are read back, in any pieces', () => {
    const content = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
    const safe = content.filter((text) => !`\n${text}`.includes(`\n--${B}`))
    fc.assert(
      fc.property(fc.array(safe, { maxLength: 6 }), fc.integer({ min: 1, max: 40 }), (values, pieces) => {
        const body = values.map((value, i) => field(`f${i}`, value, '; filename="f"')).join('') + end
        const parts = read(values.length === 0 ? end : body, pieces)
        expect(parts.map(({ start, end: to }) => body.slice(start, to))).toEqual(values)
      }),
    )
  })
})

describe('the headers of a part', () => {
  const headed = (header: string): string =>
    `--${B}\r\nContent-Disposition: form-data; name="a"\r\n${header}\r\n\r\nv\r\n`

  test('spaces and tabs around the value of a header do not belong to it', () => {
    const type = 'text/plain; a="b \t c"'
    expect(read(headed(`Content-Type: \t ${type}\t \t`) + end)).toMatchObject([{ contentType: type }])
  })

  test.each([' ', '\t', ' x', ' \t'])(
    'the headers of a part are read in time proportional to their length, however often they contain %j',
    async (piece) => {
      // As many parts as make the time measurable; a part's headers have at most 8 KiB.
      const body = (size: number): string =>
        headed(`X: x${piece.repeat(size / piece.length)}x`).repeat(8) + end
      expect(await growthOf(1_000, body, (text) => read(text))).toBeLessThan(LINEAR_GROWTH)
    },
  )
})

describe('bytes before the first boundary', () => {
  test.each(['', 'This is a multi-part message.', '\r\n--', 'p'.repeat(8_192)])(
    'bytes before the first boundary of a multipart form are skipped up to 8 KiB, in any pieces: %#',
    (preamble) => {
      const body = `${preamble}\r\n${field('a', 'b')}${end}`
      for (const pieces of [1, 5, 700, body.length]) {
        const [part, ...others] = read(body, pieces)
        expect(others).toEqual([])
        expect(part && body.slice(part.start, part.end)).toBe('b')
      }
    },
  )
})

describe('ambiguous forms', () => {
  const refused: Record<string, string> = {
    'no last boundary': field('a', 'b'),
    'nothing at all': '',
    'more than 8 KiB before the first boundary': `${'p'.repeat(8_193)}\r\n${field('a', 'b')}${end}`,
    'more than 8 KiB and no boundary': 'p'.repeat(9_000),
    'a first boundary after a bare line feed': `preamble\n${field('a', 'b')}${end}`,
    'a line before the first boundary that begins like it': `--${B}c\r\n${field('a', 'b')}${end}`,
    'a boundary in a line before the first boundary': `-${field('a', 'b')}${end}`,
    'a line that begins like the boundary': field('a', `b\r\n--${B}c`) + end,
    'a boundary after a bare line feed': `${field('a', `b\n--${B}`)}${end}`,
    'a part without a head': `--${B}\r\n\r\nb\r\n${end}`,
    'a part without a name': `--${B}\r\nContent-Disposition: form-data\r\n\r\nb\r\n${end}`,
    'a name that is stated twice': field('a', 'b', '; name="c"') + end,
    'a name in another coding': field('a', 'b', "; name*=utf-8''model") + end,
    'a name with a backslash': field('mo\\del', 'b') + end,
    'a file name that hides a name': `--${B}\r\nContent-Disposition: form-data; filename="a\\"; name="model"\r\n\r\nb\r\n${end}`,
    'two dispositions': `--${B}\r\nContent-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"\r\n\r\nb\r\n${end}`,
    'a folded header': `--${B}\r\nContent-Disposition: form-data;\r\n name="a"\r\n\r\nb\r\n${end}`,
    'an encoded part': `--${B}\r\nContent-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64\r\n\r\nYg==\r\n${end}`,
    'a head without an end': `--${B}\r\nContent-Disposition: form-data; name="${'a'.repeat(9_000)}`,
    'two hundred parts': Array.from({ length: 200 }, (_, i) => field(`f${i}`, 'v')).join('') + end,
  }
  test.each(Object.entries(refused))(
    'a multipart form that another parser may understand differently is refused: %s',
    (_what, body) => {
      for (const pieces of [1, 5, body.length || 1])
        expect(() => read(body, pieces)).toThrow(/^the form of the request is invalid/)
    },
  )
})

test('the boundary of a multipart form is read with and without quotes, before and after other parameters', () => {
  expect(boundaryOf('multipart/form-data; boundary=----WebKit1')).toBe('----WebKit1')
  expect(boundaryOf('Multipart/Form-Data; charset=utf-8; Boundary="a b=c"')).toBe('a b=c')
})

test('a multipart form without a boundary, with two boundaries, or with an invalid one is refused', () => {
  for (const parameters of [
    '',
    '; boundary=',
    '; boundary=""',
    '; boundary=a; boundary=b',
    `; boundary=${'a'.repeat(71)}`,
  ])
    expect(() => boundaryOf(`multipart/form-data${parameters}`)).toThrow(/content-type of the form/)
})

test('only a body of the type multipart/form-data is read as a form', () => {
  expect(isForm('multipart/form-data; boundary=a')).toBe(true)
  expect(isForm('multipart/mixed; boundary=a')).toBe(false)
  expect(isForm('application/json')).toBe(false)
  expect(isForm(undefined)).toBe(false)
})
