import { describe, expect, test } from 'vitest'
import { HeaderNames } from './header-names.ts'
import { RequestReader } from './request-reader.ts'

/** Reads a body of which `first` bytes arrive at once; returns its pieces. */
function piecesOf(body: Buffer, first: number): Buffer[] {
  const reader = new RequestReader(new HeaderNames(['content-length']))
  const read = (bytes: Buffer): Buffer[] => {
    // The bytes of the connection are overwritten by the next read.
    const shared = Buffer.from(bytes)
    expect(reader.read(shared)).toBe(bytes.length)
    shared.fill(0)
    return [...reader.body]
  }
  const head = Buffer.from(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`)
  const pieces = read(Buffer.concat([head, body.subarray(0, first)]))
  if (first < body.length) pieces.push(...read(body.subarray(first)))
  expect(reader.isComplete).toBe(true)
  reader.free()
  return pieces
}

/** Larger than what Node takes from its pool of small buffers. */
const BODY = Buffer.from(Array.from({ length: 80_000 }, (_, i) => i % 251))

test('the pieces of a body of which half arrives at once lie one after the other in memory', () => {
  const [one, other] = piecesOf(BODY, 40_000) as [Buffer, Buffer]
  expect(other.buffer).toBe(one.buffer)
  expect(other.byteOffset).toBe(one.byteOffset + one.length)
  expect(Buffer.concat([one, other])).toEqual(BODY)
})

test('a client that sends less than half of a body occupies no more memory than it has sent', () => {
  const [one, other] = piecesOf(BODY, 39_999) as [Buffer, Buffer]
  expect(one.buffer.byteLength).toBe(39_999)
  expect(Buffer.concat([one, other])).toEqual(BODY)
})

describe.each<[string, (blanks: number) => string]>([
  ['spaces before its target', (blanks) => `POST ${' '.repeat(blanks)}`],
  ['empty lines before it', (blanks) => `${'\r\n'.repeat(blanks / 2)}POST ${' '.repeat(blanks % 2)}`],
])('a head with %s', (_, beginning) => {
  test.each([
    ['no body', '', ''],
    ['a body of stated length', 'content-length: 5\r\n', 'hello'],
    ['a body in chunks', 'transfer-encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
  ])('may have 32,768 bytes and not one more, in any pieces, with %s', (_body, header, body) => {
    const rest = `/ HTTP/1.1\r\n${header}\r\n`
    for (const size of [32_768, 32_769]) {
      const head = beginning(size - 'POST '.length - rest.length) + rest
      expect(head).toHaveLength(size)
      for (const piece of [size + body.length, size, size - 1, size - 2, 4_096, 1_000, 7]) {
        const outcome = outcomeOf(Buffer.from(head + body), piece)
        expect(outcome, `in pieces of ${piece}`).toBe(size === 32_768 ? 'complete' : 'headers too large')
      }
    }
  })
})

function outcomeOf(bytes: Buffer, piece: number): string {
  const reader = new RequestReader(new HeaderNames(['content-length', 'transfer-encoding']))
  for (let at = 0; at < bytes.length && !reader.unreadable; )
    at += reader.read(bytes.subarray(at, (Math.floor(at / piece) + 1) * piece))
  const outcome = reader.unreadable ?? (reader.isComplete ? 'complete' : 'incomplete')
  reader.free()
  return outcome
}
